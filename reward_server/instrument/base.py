"""The contract of an instrumenter.

It returns positions in the unchanged program (`Marker`), never another program, so the sandbox
runs the original plus markers by construction. It never raises for anything a program contains:
a text that is not Python becomes an `Instrumented` with a `syntax_error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reward_server.model import Instrumented, MarkerPlacement, MarkerPlacementKey, Program


class Instrumenter(Protocol):
    """Finds the positions where a program should report its progress."""

    async def instrument(self, program: Program) -> Instrumented:
        """Return the program with its markers; a failed program is returned unchanged.

        Raises:
            InfrastructureError: `worker_lost` when the parsing child cannot be started.
        """
        ...

    async def aclose(self) -> None:
        """Stop every process this instrumenter started."""
        ...


class PlacementCache(Protocol):
    """Stores the markers that a language model placed.

    Both methods raise InfrastructureError when the store is unavailable.
    """

    async def placement(self, key: MarkerPlacementKey) -> MarkerPlacement | None:
        """Return the placement stored under this key."""
        ...

    async def keep_placement(self, key: MarkerPlacementKey, placement: MarkerPlacement) -> None:
        """Store a placement; one already stored under the key may stay."""
        ...
