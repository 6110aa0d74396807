"""A worker: borrows jobs from the database, walks them to their verdicts, and says that it lives.

It borrows a few more than there are slots, so that reading and grading programs costs no slot a
pause. A job that is lost to another worker, cancelled or out of time is given up here, box and
all; what this worker still writes about it the database refuses.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID, uuid4

from reward_server.errors import InfrastructureError, RequestError, SetupError, boundary
from reward_server.jobs.workers.circuit_breaker import Breaker
from reward_server.model import ErrorKind
from reward_server.pipeline import run_pipeline
from reward_server.store.values import LeaseRequest

if TYPE_CHECKING:
    from types import TracebackType

    from reward_server.jobs.metrics import Metrics
    from reward_server.jobs.notifier import CompletionNotifier
    from reward_server.jobs.workers.prefetcher import Prefetcher
    from reward_server.jobs.workers.result_cache import ResultCache
    from reward_server.model import AdHocProgram, Execution, Limits, Verdict
    from reward_server.pipeline import Stages
    from reward_server.store.queue import Queue
    from reward_server.store.values import LeasedJob, StoredAnswer
    from reward_server.tasks.base import Task
    from reward_server.tasks.registry import Registry

log = logging.getLogger(__name__)

_IDLE_SECONDS = 1.0
_PAUSE_SECONDS = 0.5
_GRACE_SECONDS = 0.1
# A grader that failed would fail again on the same file, after another whole run of the program.
_MAY_PASS = frozenset(
    {
        ErrorKind.SANDBOX_LOST,
        ErrorKind.SANDBOX_UNAVAILABLE,
        ErrorKind.STORE_ERROR,
        ErrorKind.WORKER_LOST,
    }
)
_NO_TASK = "the task cannot be served by the worker that took the job"
OUT_OF_TIME = "the job has used up its time over all attempts"


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """How many jobs a worker borrows, for how long, and how it lets go of them."""

    slots: int
    ahead: int
    lease_seconds: float
    drain_seconds: float
    max_attempts: int


class Worker:
    """Runs jobs until it is told to stop."""

    def __init__(  # noqa: PLR0913, PLR0917 - one argument a collaborator
        self,
        rooms: Stages,
        queue: Queue,
        registry: Registry,
        endings: CompletionNotifier,
        terms: WorkerConfig,
        foresight: Prefetcher,
        meter: Metrics,
        memory: ResultCache | None = None,
    ) -> None:
        self.claim = LeaseRequest(uuid4(), terms.lease_seconds)
        self.terms = terms
        self._rooms = rooms
        self._queue = queue
        self._registry = registry
        self._endings = endings
        self._foresight = foresight
        self._meter = meter
        self._memory = memory
        self._running: dict[UUID, tuple[int, asyncio.Task[None]]] = {}
        self._errands: set[asyncio.Task[Any]] = set()
        # Ends that were told while a job was on its way here, before it was known as ours.
        self._overheard: set[UUID] = set()
        self._reserved = 0
        self._breaker = Breaker()
        self._is_claiming = False
        self._drained_at: float | None = None
        self._more_may_wait = True
        self._wake = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._loops: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._loops = [
            self._group.create_task(self._keep_claiming()),
            self._group.create_task(self._keep_holding()),
        ]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.drain()
        tasks = self._tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._loops[1].cancel()
        with suppress(InfrastructureError):
            released = await self._queue.release(self.claim.worker)
            log.info("%d jobs are left to other workers", released)
        await self._group.__aexit__(kind, error, trace)

    async def drain(self) -> None:
        """Borrow nothing more and let what runs come to its end, for as long as the terms allow.

        The time is counted from the first call on, however often this is called; it is over when
        a call is cancelled.
        """
        self._loops[0].cancel()
        if self._drained_at is None:
            self._drained_at = time.monotonic() + self.terms.drain_seconds
        tasks = self._tasks
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=max(0.0, self._drained_at - time.monotonic()))
        except asyncio.CancelledError:
            self._drained_at = time.monotonic()
            raise

    @property
    def _tasks(self) -> list[asyncio.Task[Any]]:
        return [*(task for _, task in self._running.values()), *self._errands]

    @property
    def is_draining(self) -> bool:
        """Return whether this worker begins nothing more."""
        return self._drained_at is not None

    @property
    def errands(self) -> int:
        """Return how many errands have gone to the sandbox."""
        return len(self._errands)

    async def run_errand(
        self, errand: AdHocProgram, limits: Limits, patience_seconds: float
    ) -> Execution:
        """Run a bare program beside the jobs, in a place that is not borrowed for one meanwhile.

        Raises:
            TimeoutError: when there was no place within the caller's patience.
            InfrastructureError: when no box could be had, or one was lost.
        """
        task = asyncio.ensure_future(self._rooms.sandbox.run(errand, limits, patience_seconds))
        self._errands.add(task)
        try:
            return await task
        finally:
            self._errands.discard(task)
            if self._more_may_wait:
                self._wake.set()

    @property
    def busy(self) -> int:
        """Return how many jobs this worker has."""
        return len(self._running)

    @property
    def free(self) -> int:
        """Return how many more jobs this worker may borrow."""
        if self._drained_at is not None:
            return 0
        most = 1 if self._breaker.is_open else self.terms.slots + self.terms.ahead
        kept = min(len(self._errands), most - 1)  # with one place, jobs still have their turn
        return most - kept - len(self._running) - self._reserved

    def wake(self) -> None:
        """Look for jobs now, or else as soon as there is a place for one."""
        self._more_may_wait = True
        self._wake.set()

    def reserve(self) -> bool:
        """Keep a place for a job that is about to be accepted, if there is one."""
        has_place = self.free > 0 and not self._breaker.is_open
        self._reserved += has_place
        return has_place

    def unreserve(self) -> None:
        """Give up a place that was kept."""
        self._reserved -= 1

    def runs(self, job_id: UUID) -> bool:
        """Return whether this worker is at work on a job, and so will tell of its end."""
        return job_id in self._running and not self._running[job_id][1].done()

    def start(self, job: LeasedJob) -> None:
        """Begin with a job that was lent to this worker."""
        if job.job_id in self._running:
            self._running[job.job_id][1].cancel()  # lost, and lent to this same worker again
        task = self._group.create_task(self._run(job))
        self._running[job.job_id] = job.attempt, task
        task.add_done_callback(lambda _: self._forget(job))
        if job.job_id in self._overheard:
            self._group.create_task(self.look_after(job.job_id))

    async def look_after(self, *job_ids: UUID) -> None:
        """See whether jobs of this worker are still its own, and give up those that are not.

        Where the database does not answer, the next sign of life will tell.
        """
        ours = [job_id for job_id in job_ids if job_id in self._running]
        if self._reserved or self._is_claiming:
            self._overheard.update(set(job_ids).difference(ours))
        if not ours:
            return
        await asyncio.sleep(_GRACE_SECONDS)  # most ends are this worker's own doing
        with suppress(InfrastructureError):
            await self._hold(ours)

    def _forget(self, job: LeasedJob) -> None:
        if self._running.get(job.job_id, (None,))[0] == job.attempt:
            del self._running[job.job_id]
        if self._more_may_wait:
            self._wake.set()

    async def _keep_claiming(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self._wake.wait()
            await asyncio.sleep(self._breaker.pause_seconds)
            self._wake.clear()
            with suppress(InfrastructureError):  # the store's own log has it
                await self._claim_all()

    async def _claim_all(self) -> None:
        while (free := self.free) > 0:
            if not self._reserved:
                self._overheard.clear()
            self._more_may_wait, self._is_claiming = False, True
            try:
                jobs = await self._queue.claim(self.claim, free, self._registry.prepared_ids())
            finally:
                self._is_claiming = False
            for job in jobs:
                self.start(job)
            if len(jobs) < free:
                break
            self._more_may_wait = True
        await self._foresight.look(self._queue)

    async def _keep_holding(self) -> None:
        while True:
            await asyncio.sleep(self.terms.lease_seconds / 3)
            with suppress(InfrastructureError):
                await self._hold(list(self._running))

    async def _hold(self, job_ids: list[UUID]) -> None:
        held = {job_id: self._running[job_id] for job_id in job_ids if job_id in self._running}
        if not held:
            return
        still = await self._queue.hold(self.claim, held)
        for job_id, (attempt, task) in held.items():
            if still.get(job_id) != attempt and not (task.done() or task.cancelling()):
                # Most were cancelled by their trainer, a few hundred of them in a step.
                log.info("job %s is given up: it is no longer ours", job_id)
                task.cancel()

    async def _run(self, job: LeasedJob) -> None:
        try:
            async with asyncio.timeout(max(0.0, job.left_seconds)):
                answer = await self._answer(job)
        except (RequestError, SetupError):
            log.exception("job %s is of a task that cannot be served here", job.job_id)
            await self._fail(job, ErrorKind.WORKER_LOST, _NO_TASK)
        except TimeoutError:
            await self._fail(job, ErrorKind.WORKER_LOST, OUT_OF_TIME)
        except InfrastructureError as error:
            await self._after_fault(job, error)
        else:
            if answer.execution.duration_seconds > 0 and answer.reused_from is None:
                self._breaker.passed()
            self._meter.ended(answer)
            self._endings.tell(job.job_id, answer)
            return
        self._endings.tell(job.job_id)

    async def _answer(self, job: LeasedJob) -> StoredAnswer:
        task = self._registry.get(job.submission.task_id)
        with boundary(ErrorKind.WORKER_LOST, "worker"):
            known = await self._recall(job, task)
            if known is not None:
                return await self._rooms.recorder.record(job.job_id, job.attempt, known)
            return await run_pipeline(job, task, self._rooms)

    async def _recall(self, job: LeasedJob, task: Task) -> Verdict | None:
        return None if self._memory is None else await self._memory.recall(job, task, self._rooms)

    async def _after_fault(self, job: LeasedJob, error: InfrastructureError) -> None:
        if error.kind is ErrorKind.CANCELLED:
            return
        could_not_begin = error.kind is ErrorKind.SANDBOX_UNAVAILABLE
        is_fault = not (could_not_begin and self._breaker.is_open)
        if could_not_begin:
            self._breaker.failed()
        if error.kind in _MAY_PASS and await self._is_left(job, is_fault=is_fault):
            log.warning("job %s is tried again: %s", job.job_id, error.message)
            return
        self._meter.errored(job.submission.task_id, error.kind.value)
        log.error("job %s ended without a reward: %s", job.job_id, error.message)
        await self._fail(job, error.kind, error.message)

    async def _is_left(self, job: LeasedJob, *, is_fault: bool) -> bool:
        """Leave a job to another attempt, if it may have one."""
        pause_seconds = self._breaker.pause_seconds or _PAUSE_SECONDS * job.attempt
        try:
            return await self._queue.retry(
                job.job_id,
                job.attempt,
                self.terms.max_attempts,
                pause_seconds,
                is_fault=is_fault,
            )
        except InfrastructureError:
            return True  # the lease runs out, and somebody takes it up

    async def _fail(self, job: LeasedJob, kind: ErrorKind, message: str) -> None:
        with suppress(InfrastructureError):  # the lease runs out, here too
            await self._queue.fail(job.job_id, job.attempt, kind, message)
