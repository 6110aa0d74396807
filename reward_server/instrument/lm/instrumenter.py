"""Markers placed by a language model, with the static finder at its side.

The model is asked while the static finder works, so that its lines are there when the model is
late, down, talked into nonsense or has nothing to say; the answer tells who placed the markers
and why it was not the model. What the model said once of a program is kept, trouble of the
moment is not. Programs that are the same and under way at the same time are one question.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reward_server.errors import InfrastructureError
from reward_server.instrument.lm.prompts import PROMPT_VERSION, LmRequest, Mode, ask_about
from reward_server.model import (
    Instrumentation,
    Instrumented,
    MarkerPlacement,
    MarkerPlacementKey,
    Program,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Coroutine

    from reward_server.instrument.base import PlacementCache
    from reward_server.instrument.lm.endpoint import LmEndpoint
    from reward_server.instrument.parser import Parsed, StaticInstrumenter
    from reward_server.model import Failure, Marker

log = logging.getLogger(__name__)

_CACHE_SECONDS = 5.0
_LONGEST_ADDITION = 1 << 14
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Found:
    """What holds for every submission of one program."""

    markers: tuple[Marker, ...]
    by: Instrumentation
    failure: Failure | None = None


class LmInstrumenter:
    """Asks a language model where a program reaches its milestones."""

    kind = "lm"

    def __init__(
        self,
        static: StaticInstrumenter,
        endpoint: LmEndpoint,
        cache: PlacementCache | None = None,
        *,
        mode: Mode = Mode.INSERT,
        merge: bool = False,
    ) -> None:
        self._static = static
        self._parser = static.parser
        self._endpoint = endpoint
        self._cache = cache
        self._mode = mode
        self._merge = merge
        self._under_way: dict[str, asyncio.Task[_Found]] = {}

    async def instrument(self, program: Program) -> Instrumented:
        """Return the program with the markers of the model, or else of the static finder.

        Raises:
            InfrastructureError: `worker_lost` when the parsing child does not work.
        """
        if program.failure is not None:
            return Instrumented(program, (), Instrumentation(self.kind), program.failure)
        found = await self._join(program)
        return Instrumented(program, found.markers, found.by, found.failure)

    async def aclose(self) -> None:
        """Give up what is under way, stop the parsing children and close the connections."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._static.aclose()
        await self._endpoint.aclose()

    async def _join(self, program: Program) -> _Found:
        """Work on a program, or wait for the work on one like it; who gives up stops nobody."""
        digest = program.digest
        task = self._under_way.get(digest)
        if task is None:
            task = asyncio.create_task(self._work(program.code, digest))
            self._under_way[digest] = task
            task.add_done_callback(lambda done: self._forget(digest, done))
        return await asyncio.shield(task)

    def _forget(self, digest: str, task: asyncio.Task[_Found]) -> None:
        del self._under_way[digest]
        if not task.cancelled():
            task.exception()  # whoever still waits has it; with nobody left it is no surprise

    async def _work(self, code: str, digest: str) -> _Found:
        seen = await self._parser.view(code)
        if seen.failure is not None:
            return _Found((), Instrumentation(self.kind), seen.failure)
        key = MarkerPlacementKey(digest, self._mode.value, self._endpoint.model, PROMPT_VERSION)
        kept = await self._recall(code, key)
        if kept is not None and kept.markers and not self._merge:
            return self._found("lm", kept)
        async with _beside(self._parser.find(code)) as finding:
            placed = kept or await self._consult(code, seen.text, key)
            return await self._choose(code, placed, await finding)

    async def _consult(
        self, code: str, text: str | None, key: MarkerPlacementKey
    ) -> MarkerPlacement:
        """Ask the model about a program; what it said is kept, if it said anything."""
        if text is None:
            return MarkerPlacement((), "the program's comments cannot be told from its code")
        question = ask_about(text, self._mode)
        if question.tokens > self._endpoint.context_tokens:
            return MarkerPlacement((), "the program is too long for the language model")
        placed, is_final = await self._ask(code, question)
        if is_final:
            await self._keep(key, placed)
        return placed

    async def _ask(self, code: str, question: LmRequest) -> tuple[MarkerPlacement, bool]:
        reply = await self._endpoint.ask(question)
        if reply.trouble is not None:
            told = MarkerPlacement((), f"the language model {reply.trouble.text}")
            return told, reply.trouble.is_of_the_answer
        if len(reply.text) > _LONGEST_ADDITION + 2 * len(code):
            return MarkerPlacement((), "the language model said more than was asked for"), True
        parsed = await self._parser.place(code, reply.text, self._mode)
        if parsed.failure is not None:
            return MarkerPlacement((), "the language model's answer is too complex to read"), True
        if parsed.markers:
            return MarkerPlacement(parsed.markers, parsed.reason), True
        why = parsed.reason or "it names no place"
        return MarkerPlacement((), f"the language model was of no help: {why}"), True

    async def _choose(self, code: str, placed: MarkerPlacement, static: Parsed) -> _Found:
        """Decide whose markers are used; what nobody has checked as it stands is checked."""
        if not placed.markers:
            return _static_found(static, placed.reason)
        if not self._merge or not static.markers:
            return self._found("lm", placed)
        both = dict.fromkeys((*placed.markers, *static.markers))
        order = sorted(both, key=lambda marker: (marker.line, marker.column, marker.milestone))
        checked = await self._parser.check(code, order)
        if checked.failure is not None or checked.reason is not None:
            return self._found("lm", placed)
        return self._found("lm+static", MarkerPlacement(checked.markers, placed.reason))

    def _found(self, kind: str, placed: MarkerPlacement) -> _Found:
        model = self._endpoint.model
        return _Found(
            placed.markers, Instrumentation(kind, model, verified=True, reason=placed.reason)
        )

    async def _recall(self, code: str, key: MarkerPlacementKey) -> MarkerPlacement | None:
        """Return what the model said before, if that still holds for this program."""
        kept = None if self._cache is None else await _or_nothing(self._cache.placement(key))
        if kept is None or not kept.markers:
            return kept
        checked = await self._parser.check(code, kept.markers)
        return kept if checked.failure is None and checked.reason is None else None

    async def _keep(self, key: MarkerPlacementKey, placed: MarkerPlacement) -> None:
        if self._cache is not None:
            await _or_nothing(self._cache.keep_placement(key, placed))


def _static_found(static: Parsed, reason: str | None) -> _Found:
    verified = static.failure is None and static.reason is None
    reasons = "; ".join(part for part in (reason, static.reason) if part)
    by = Instrumentation("static", verified=verified, reason=reasons or None)
    return _Found(static.markers, by, static.failure)


async def _or_nothing(work: Awaitable[_T]) -> _T | None:
    """Return what the cache says; where it has trouble, nothing is known."""
    try:
        async with asyncio.timeout(_CACHE_SECONDS):
            return await work
    except (InfrastructureError, TimeoutError) as error:
        log.warning("the cache of placements was not used: %r", error)
        return None


@asynccontextmanager
async def _beside(work: Coroutine[None, None, _T]) -> AsyncIterator[asyncio.Task[_T]]:
    """Do something at the same time; it is given up where it is no longer waited for."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
