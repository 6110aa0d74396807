"""Errands: bare programs that are run at once for somebody who waits, and of which nothing is kept.

They have the same places as stored jobs. As long as no job waits they may have all of them, else
half of them and at least one; who came first goes first. An errand waits as long as its caller
has patience, and what it waits never counts against its own time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, OverloadedError, RequestError
from reward_server.model import ErrorKind, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reward_server.jobs.admission import Admission
    from reward_server.jobs.metrics import Metrics
    from reward_server.jobs.workers.worker import Worker
    from reward_server.model import AdHocProgram, Execution

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_PAUSE_SECONDS = 0.5
_RETRY_SECONDS = 5
_LEAST_MEMORY_BYTES = 64 << 20
_COPIES = 4
_MAY_PASS = frozenset({ErrorKind.SANDBOX_LOST, ErrorKind.SANDBOX_UNAVAILABLE})


class NoResultError(Exception):
    """Through no fault of the program there is no result; the same may do better at once."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class AdHocRequest:
    """What a caller wants for a program, and how long there is patience to wait for a place."""

    wall_seconds: float
    memory_bytes: int | None
    patience_seconds: float


@dataclass(frozen=True, slots=True)
class RunCodeLimits:
    """What one errand may use at the most, and its memory where it does not say; how many wait.

    What waits is kept in this process, so that its bytes are bounded, too.
    """

    ceiling: Limits
    memory_bytes: int
    waiting: int
    waiting_bytes: int


class RunCodeService:
    """Runs bare programs in the places of this process's worker."""

    def __init__(
        self, terms: RunCodeLimits, worker: Worker, admission: Admission, meter: Metrics
    ) -> None:
        self._terms = terms
        self._worker = worker
        self._admission = admission
        self._meter = meter
        self._line: deque[asyncio.Future[None]] = deque()
        self._begun = 0
        self._bytes = 0
        self._look: asyncio.TimerHandle | None = None

    async def run(self, errand: AdHocProgram, wish: AdHocRequest) -> Execution:
        """Run a program once there is a place for it; a fault of ours is tried again in time.

        Raises:
            RequestError: `too_large` for what does not fit into a box, `invalid_request` for more
                time than any may have.
            OverloadedError: when too many wait already.
            NoResultError: when there was no place in time, or a box was lost.
            InfrastructureError: when this server is being stopped.
        """
        size = _size(errand)
        limits = self._limits(wish, size)
        deadline = time.monotonic() + wish.patience_seconds
        try:
            async with self._turn(size, deadline):
                execution = await self._insist(errand, limits, deadline)
        except (NoResultError, OverloadedError, InfrastructureError) as error:
            self._meter.ran_errand(error.kind.value)
            raise
        failure = execution.failure
        self._meter.ran_errand("success" if failure is None else failure.kind.value)
        return execution

    def _limits(self, wish: AdHocRequest, size: int) -> Limits:
        ceiling = self._terms.ceiling
        if wish.wall_seconds > ceiling.wall_seconds:
            message = f"run_timeout is above this server's limit of {ceiling.wall_seconds:g}"
            raise RequestError(ErrorKind.INVALID_REQUEST, message)
        if size > ceiling.disk_bytes // 2:
            message = "the program and its files are larger than half of a box's disk"
            raise RequestError(ErrorKind.TOO_LARGE, message)
        wanted = self._terms.memory_bytes if wish.memory_bytes is None else wish.memory_bytes
        least = _LEAST_MEMORY_BYTES + _COPIES * size  # handing it over must not be what kills it
        memory_bytes = min(max(wanted, least), ceiling.memory_bytes)
        return replace(ceiling, wall_seconds=wish.wall_seconds, memory_bytes=memory_bytes)

    async def _insist(self, errand: AdHocProgram, limits: Limits, deadline: float) -> Execution:
        """Run a program, again where a box was lost early enough for the caller to wait for it."""
        for attempt in range(1, self._worker.terms.max_attempts + 1):
            left_seconds = max(0.0, deadline - time.monotonic())
            try:
                return await self._worker.run_errand(errand, limits, left_seconds)
            except TimeoutError:
                break
            except InfrastructureError as error:
                is_last = attempt == self._worker.terms.max_attempts
                is_late = time.monotonic() + _PAUSE_SECONDS > deadline
                if error.kind not in _MAY_PASS or is_last or is_late or self._worker.is_draining:
                    raise NoResultError(error.kind, error.message) from error
                log.warning("an errand is tried again: %s", error.message)
            await asyncio.sleep(_PAUSE_SECONDS)
        raise _no_place()

    @asynccontextmanager
    async def _turn(self, size: int, deadline: float) -> AsyncIterator[None]:
        """Wait in line until it is our turn to go to the sandbox."""
        self._refuse(size)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._bytes += size
        self._line.append(turn)
        self._serve()
        try:
            await _in_time(turn, deadline)
            yield
        finally:
            self._leave(turn, size)

    def _refuse(self, size: int) -> None:
        if self._worker.is_draining:
            raise _stopping()
        terms = self._terms
        is_full = len(self._line) >= terms.waiting
        if is_full or (self._bytes and self._bytes + size > terms.waiting_bytes):
            message = "too many programs wait for a place; try again later"
            raise OverloadedError(message, _RETRY_SECONDS)

    def _leave(self, turn: asyncio.Future[None], size: int) -> None:
        self._bytes -= size
        if turn in self._line:
            self._line.remove(turn)
        elif turn.done() and not turn.cancelled() and turn.exception() is None:
            self._begun -= 1
        self._serve()

    def _serve(self) -> None:
        """Let go as many as there is room for, in order, and look again while some wait."""
        if self._look is not None:
            self._look.cancel()
            self._look = None
        while self._line and (self._worker.is_draining or self._begun < self._most):
            turn = self._line.popleft()
            if turn.done():
                continue
            if self._worker.is_draining:
                turn.set_exception(_stopping())
            else:
                self._begun += 1
                turn.set_result(None)
        self._meter.errands_wait(len(self._line))
        if self._line:
            self._look = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._serve)

    @property
    def _most(self) -> int:
        """Return how many may be in the sandbox at once."""
        slots = self._worker.terms.slots
        do_jobs_wait = self._admission.queued > 0 or self._worker.busy + self._begun > slots
        return max(1, slots // 2) if do_jobs_wait else slots


def _size(errand: AdHocProgram) -> int:
    files = sum(len(name) + len(content) for name, content in errand.files.items())
    return len(errand.code.encode()) + len(errand.stdin) + files


async def _in_time(turn: asyncio.Future[None], deadline: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            await turn
    except TimeoutError:
        raise _no_place() from None


def _no_place() -> NoResultError:
    message = "no place came free in time; nothing has run"
    return NoResultError(ErrorKind.OVERLOADED, message)


def _stopping() -> InfrastructureError:
    message = "the server is being stopped; try again later"
    return InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)
