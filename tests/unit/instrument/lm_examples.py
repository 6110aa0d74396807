"""A program, a model's good reply about it, useless replies, and a cache in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.model import (
    ErrorKind,
    Instrumentation,
    Marker,
    MarkerPlacement,
    MarkerPlacementKey,
    Milestone,
)
from tests.support.lm_endpoints import (
    MODEL,
    completion,
    fails,
    floods,
    hangs,
    marks,
    respond,
    says,
    sends,
    stalls,
)
from tests.unit.instrument.corpus import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.lm.instrumenter import LmInstrumenter
    from tests.support.lm_endpoints import Behaviour

    Make = Callable[..., LmInstrumenter]

CODE = next(path for path in PROGRAMS if path.stem == "pizza_flat").read_text()
GOOD = ((5, "imported packages"), (9, "loaded data"), (18, "trained model"))
GOOD_MARKERS = (
    Marker(5, 0, Milestone.IMPORTED_PACKAGES),
    Marker(9, 0, Milestone.LOADED_DATA),
    Marker(18, 0, Milestone.TRAINED_MODEL),
)
BY_LM = Instrumentation("lm", MODEL, verified=True)


USELESS: dict[str, tuple[Behaviour, str]] = {
    "no places": (marks(), "of no help: it names no place"),
    "prose": (says("Certainly! Here are the places."), "not the JSON"),
    "five hundred": (fails(500), "answered with an error"),
    "too busy": (fails(429, Retry_After="9999"), "too much to do"),
    "refused": (fails(400), "refused the question"),
    "hanging": (hangs, "did not answer in time"),
    "stalling": (stalls, "did not answer in time"),
    "flooding": (floods, "more than was asked for"),
    "no choices": (sends(respond(b'{"choices": []}')), "empty answer"),
    "null": (says(None), "empty answer"),
    "cut": (sends(respond(completion("{", finish="length"))), "cut off"),
    "another model": (says("{}", model="other"), "not the one that was asked for"),
    "all at the top": (marks(*((1, m.label) for m in list(Milestone)[1:])), "not at such a step"),
    "a nest": (says("[" * 10_000), "not the JSON"),
    "a book": (says("[" * 100_000), "said more than was asked for"),
}


class MemoryCache:
    """A cache without a database, that can break."""

    def __init__(self) -> None:
        self.kept: dict[MarkerPlacementKey, MarkerPlacement] = {}
        self.is_broken = False

    async def placement(self, key: MarkerPlacementKey) -> MarkerPlacement | None:
        self._check()
        return self.kept.get(key)

    async def keep_placement(self, key: MarkerPlacementKey, placement: MarkerPlacement) -> None:
        self._check()
        self.kept[key] = placement

    def _check(self) -> None:
        if self.is_broken:
            raise InfrastructureError(ErrorKind.STORE_ERROR, "gone")
