"""Running ad hoc programs: at once, for a caller that waits, without storing anything.

Ad hoc programs share the worker's slots with jobs. They may use all slots while no job waits, else
half of them and at least one, in order of arrival. A program waits for a slot as long as its caller
allows; that wait does not count against its run time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, QueueFullError, RequestError
from reward_server.model import ErrorKind, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reward_server.jobs.admission import Admission
    from reward_server.jobs.metrics import Metrics
    from reward_server.jobs.workers.worker import Worker
    from reward_server.model import AdHocProgram, Execution

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_PAUSE_SECONDS = 0.5
_RETRY_SECONDS = 5
_MIN_MEMORY_BYTES = 64 << 20
_COPIES = 4
_TRANSIENT = frozenset({ErrorKind.SANDBOX_LOST, ErrorKind.SANDBOX_UNAVAILABLE})


class NoResultError(Exception):
    """The program has no result, through no fault of its own; running it again may succeed."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class AdHocRequest:
    """What a caller asks for a program, and how long it may wait for a slot."""

    wall_seconds: float
    memory_bytes: int | None
    max_wait_seconds: float


@dataclass(frozen=True, slots=True)
class RunCodeLimits:
    """The most one program may use, its memory by default, and how many programs may wait.

    Programs wait in this process's memory, so the sum of their bytes is bounded as well.
    """

    ceiling: Limits
    memory_bytes: int
    waiting: int
    waiting_bytes: int


class RunCodeService:
    """Runs ad hoc programs in the slots of this process's worker."""

    def __init__(
        self, limits: RunCodeLimits, worker: Worker, admission: Admission, metrics: Metrics
    ) -> None:
        self._limits = limits
        self._worker = worker
        self._admission = admission
        self._metrics = metrics
        self._line: deque[asyncio.Future[None]] = deque()
        self._started = 0
        self._bytes = 0
        self._poll: asyncio.TimerHandle | None = None

    async def run(self, program: AdHocProgram, request: AdHocRequest) -> Execution:
        """Run a program once a slot is free for it; retry if the sandbox fails and time is left.

        Raises:
            RequestError: `too_large` if the program does not fit into a sandbox, `invalid_request`
                if it asks for more time than any may have.
            QueueFullError: when too many wait already.
            NoResultError: when no slot came free in time, or the sandbox was lost.
            InfrastructureError: when this server stops.
        """
        size = _size(program)
        limits = self._limits_for(request, size)
        deadline = time.monotonic() + request.max_wait_seconds
        try:
            async with self._turn(size, deadline):
                execution = await self._run_with_retries(program, limits, deadline)
        except (NoResultError, QueueFullError, InfrastructureError) as error:
            self._metrics.record_program(error.kind.value)
            raise
        failure = execution.failure
        self._metrics.record_program("success" if failure is None else failure.kind.value)
        return execution

    def _limits_for(self, request: AdHocRequest, size: int) -> Limits:
        ceiling = self._limits.ceiling
        if request.wall_seconds > ceiling.wall_seconds:
            message = f"run_timeout is above this server's limit of {ceiling.wall_seconds:g}"
            raise RequestError(ErrorKind.INVALID_REQUEST, message)
        if size > ceiling.disk_bytes // 2:
            message = "the program and its files are larger than half of a sandbox's disk"
            raise RequestError(ErrorKind.TOO_LARGE, message)
        default = self._limits.memory_bytes
        wanted = default if request.memory_bytes is None else request.memory_bytes
        least = _MIN_MEMORY_BYTES + _COPIES * size  # the copies made on its way into the sandbox
        memory_bytes = min(max(wanted, least), ceiling.memory_bytes)
        return replace(ceiling, wall_seconds=request.wall_seconds, memory_bytes=memory_bytes)

    async def _run_with_retries(
        self, program: AdHocProgram, limits: Limits, deadline: float
    ) -> Execution:
        """Run a program, and again if its sandbox fails while the caller still waits."""
        max_attempts = self._worker.config.max_attempts
        for attempt in range(1, max_attempts + 1):
            left_seconds = max(0.0, deadline - time.monotonic())
            try:
                return await self._worker.run_program(program, limits, left_seconds)
            except TimeoutError:
                break
            except InfrastructureError as error:
                is_last = attempt == max_attempts
                is_late = time.monotonic() + _PAUSE_SECONDS > deadline
                if error.kind not in _TRANSIENT or is_last or is_late or self._worker.is_draining:
                    raise NoResultError(error.kind, error.message) from error
                log.warning("an ad hoc program is retried: %s", error.message)
            await asyncio.sleep(_PAUSE_SECONDS)
        raise _no_slot()

    @asynccontextmanager
    async def _turn(self, size: int, deadline: float) -> AsyncIterator[None]:
        """Wait in line until a slot is free."""
        self._refuse_if_full(size)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._bytes += size
        self._line.append(turn)
        self._admit_next()
        try:
            await _in_time(turn, deadline)
            yield
        finally:
            self._leave(turn, size)

    def _refuse_if_full(self, size: int) -> None:
        if self._worker.is_draining:
            raise _stopping()
        limits = self._limits
        is_full = len(self._line) >= limits.waiting
        if is_full or (self._bytes and self._bytes + size > limits.waiting_bytes):
            message = "too many programs wait for a slot; try again later"
            raise QueueFullError(message, _RETRY_SECONDS)

    def _leave(self, turn: asyncio.Future[None], size: int) -> None:
        self._bytes -= size
        if turn in self._line:
            self._line.remove(turn)
        elif turn.done() and not turn.cancelled() and turn.exception() is None:
            self._started -= 1
        self._admit_next()

    def _admit_next(self) -> None:
        """Let as many programs start as there are slots for, in order; poll while some wait."""
        if self._poll is not None:
            self._poll.cancel()
            self._poll = None
        while self._line and (self._worker.is_draining or self._started < self._most):
            turn = self._line.popleft()
            if turn.done():
                continue
            if self._worker.is_draining:
                turn.set_exception(_stopping())
            else:
                self._started += 1
                turn.set_result(None)
        self._metrics.set_waiting_programs(len(self._line))
        if self._line:
            self._poll = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._admit_next)

    @property
    def _most(self) -> int:
        """Return how many programs may be in the sandbox at once."""
        slots = self._worker.config.slots
        do_jobs_wait = self._admission.queued > 0 or self._worker.busy + self._started > slots
        return max(1, slots // 2) if do_jobs_wait else slots


def _size(program: AdHocProgram) -> int:
    files = sum(len(name) + len(content) for name, content in program.files.items())
    return len(program.code.encode()) + len(program.stdin) + files


async def _in_time(turn: asyncio.Future[None], deadline: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            await turn
    except TimeoutError:
        raise _no_slot() from None


def _no_slot() -> NoResultError:
    message = "no slot came free in time; nothing has run"
    return NoResultError(ErrorKind.OVERLOADED, message)


def _stopping() -> InfrastructureError:
    message = "the server is stopping; try again later"
    return InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)
