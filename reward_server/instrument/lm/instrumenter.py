"""Markers placed by a language model, with the static analyzer as the fallback.

The static analyzer runs while the model is asked. If the model is slow, down, talked into nonsense
or finds nothing, its markers are used, and `Instrumentation` says who placed the markers and why
it was not the model. The cache keeps what the model said about a program, but no transient
failure. Identical programs in flight share one request.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reward_server.errors import InfrastructureError
from reward_server.instrument.lm.prompts import PROMPT_VERSION, LmRequest, Mode, build_request
from reward_server.instrument.syntax_tree import marker_order
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
_MOST_ADDED_CHARACTERS = 1 << 14
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The markers of one program, shared by every submission of it."""

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
        self._in_flight: dict[str, asyncio.Task[_Outcome]] = {}

    async def instrument(self, program: Program) -> Instrumented:
        """Return the program with the markers of the model, or else of the static analyzer.

        Raises:
            InfrastructureError: `worker_lost` when the parsing child does not work.
        """
        if program.failure is not None:
            return Instrumented(program, (), Instrumentation(self.kind), program.failure)
        found = await self._join(program)
        return Instrumented(program, found.markers, found.by, found.failure)

    async def aclose(self) -> None:
        """Cancel what is in flight, stop the parsing children and close the connections."""
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._static.aclose()
        await self._endpoint.aclose()

    async def _join(self, program: Program) -> _Outcome:
        """Instrument a program, or join an identical one; cancelling one waiter stops no other."""
        digest = program.digest
        task = self._in_flight.get(digest)
        if task is None:
            task = asyncio.create_task(self._work(program.code, digest))
            self._in_flight[digest] = task
            task.add_done_callback(lambda done: self._forget(digest, done))
        # A cancelled waiter must not cancel the work that others wait for.
        return await asyncio.shield(task)

    def _forget(self, digest: str, task: asyncio.Task[_Outcome]) -> None:
        del self._in_flight[digest]
        if not task.cancelled():
            task.exception()  # mark as retrieved: every waiter may have been cancelled

    async def _work(self, code: str, digest: str) -> _Outcome:
        stripped = await self._parser.strip_comments(code)
        if stripped.failure is not None:
            return _Outcome((), Instrumentation(self.kind), stripped.failure)
        key = MarkerPlacementKey(digest, self._mode.value, self._endpoint.model, PROMPT_VERSION)
        kept = await self._load_cached(code, key)
        if kept is not None and kept.markers and not self._merge:
            return self._found("lm", kept)
        async with _concurrently(self._parser.find_markers(code)) as finding:
            placed = kept or await self._ask_model(code, stripped.text, key)
            return await self._choose(code, placed, await finding)

    async def _ask_model(
        self, code: str, text: str | None, key: MarkerPlacementKey
    ) -> MarkerPlacement:
        """Ask the model about a program, and cache the result unless the failure is transient."""
        if text is None:
            return MarkerPlacement((), "the program's comments cannot be told from its code")
        request = build_request(text, self._mode)
        if request.tokens > self._endpoint.context_tokens:
            return MarkerPlacement((), "the program is too long for the language model")
        placed, is_final = await self._request(code, request)
        if is_final:
            await self._store(key, placed)
        return placed

    async def _request(self, code: str, request: LmRequest) -> tuple[MarkerPlacement, bool]:
        reply = await self._endpoint.ask(request)
        if reply.trouble is not None:
            failed = MarkerPlacement((), f"the language model {reply.trouble}")
            return failed, reply.trouble.is_final
        if len(reply.text) > _MOST_ADDED_CHARACTERS + 2 * len(code):
            return MarkerPlacement((), "the language model said more than was asked for"), True
        parsed = await self._parser.read_reply(code, reply.text, self._mode)
        if parsed.failure is not None:
            return MarkerPlacement((), "the language model's answer is too complex to read"), True
        if parsed.markers:
            return MarkerPlacement(parsed.markers, parsed.reason), True
        why = parsed.reason or "it names no place"
        return MarkerPlacement((), f"the language model was of no help: {why}"), True

    async def _choose(self, code: str, placed: MarkerPlacement, static: Parsed) -> _Outcome:
        """Decide whose markers are used; a merged set is verified again."""
        if not placed.markers:
            return _static_found(static, placed.reason)
        if not self._merge or not static.markers:
            return self._found("lm", placed)
        both = dict.fromkeys((*placed.markers, *static.markers))
        order = sorted(both, key=marker_order)
        checked = await self._parser.check_markers(code, order)
        if checked.failure is not None or checked.reason is not None:
            return self._found("lm", placed)
        return self._found("lm+static", MarkerPlacement(checked.markers, placed.reason))

    def _found(self, kind: str, placed: MarkerPlacement) -> _Outcome:
        model = self._endpoint.model
        return _Outcome(
            placed.markers, Instrumentation(kind, model, verified=True, reason=placed.reason)
        )

    async def _load_cached(self, code: str, key: MarkerPlacementKey) -> MarkerPlacement | None:
        """Return the cached placement, if its markers still pass verification."""
        kept = None if self._cache is None else await _or_none(self._cache.placement(key))
        if kept is None or not kept.markers:
            return kept
        checked = await self._parser.check_markers(code, kept.markers)
        return kept if checked.failure is None and checked.reason is None else None

    async def _store(self, key: MarkerPlacementKey, placed: MarkerPlacement) -> None:
        if self._cache is not None:
            await _or_none(self._cache.keep_placement(key, placed))


def _static_found(static: Parsed, reason: str | None) -> _Outcome:
    verified = static.failure is None and static.reason is None
    reasons = "; ".join(part for part in (reason, static.reason) if part)
    by = Instrumentation("static", verified=verified, reason=reasons or None)
    return _Outcome(static.markers, by, static.failure)


async def _or_none(work: Awaitable[_T]) -> _T | None:
    """Return what the cache returns, or nothing if the cache fails."""
    try:
        async with asyncio.timeout(_CACHE_SECONDS):
            return await work
    except (InfrastructureError, TimeoutError) as error:
        log.warning("the placement cache is unavailable: %r", error)
        return None


@asynccontextmanager
async def _concurrently(work: Coroutine[None, None, _T]) -> AsyncIterator[asyncio.Task[_T]]:
    """Run a coroutine concurrently with the block; cancel it if the block ends first."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
