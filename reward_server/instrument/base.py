"""What an instrumenter promises.

It answers with places in the unchanged program (`Marker`), never with another program, so
that what runs is the original plus markers by construction. It never raises for anything a
program contains: a text that is not Python is an `Instrumented` with a `syntax_error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reward_server.model import Instrumented, MarkerPlacement, MarkerPlacementKey, Program


class Instrumenter(Protocol):
    """Finds the places where a program should report its progress."""

    async def instrument(self, program: Program) -> Instrumented:
        """Return the program with its markers; a failed program comes back as it is.

        Raises:
            InfrastructureError: `worker_lost` when the parsing child cannot be started.
        """
        ...

    async def aclose(self) -> None:
        """Stop every process this instrumenter started."""
        ...


class PlacementCache(Protocol):
    """Keeps what a language model said of programs.

    Both methods raise InfrastructureError when that cannot be done now.
    """

    async def placement(self, key: MarkerPlacementKey) -> MarkerPlacement | None:
        """Return what was kept under this key."""
        ...

    async def keep_placement(self, key: MarkerPlacementKey, placement: MarkerPlacement) -> None:
        """Keep this; what is kept under the key already may stay."""
        ...
