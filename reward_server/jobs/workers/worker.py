"""A worker: leases jobs from the database, runs them, and renews its leases.

It leases a few more jobs than it has slots, so that parsing and grading leave no slot idle. When a
job is cancelled, out of time or leased to another worker, this worker stops it and its sandbox. The
database refuses whatever the worker still writes about such a job.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID, uuid4

from reward_server.errors import InfrastructureError
from reward_server.jobs.workers.lease_windows import LeaseWindows
from reward_server.store.values import LeaseRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from reward_server.jobs.workers.attempt import AttemptRunner
    from reward_server.jobs.workers.prefetcher import InstrumentationPrefetcher
    from reward_server.model import AdHocProgram, Execution, Limits
    from reward_server.store.queue import Queue
    from reward_server.store.values import LeasedJob

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_GRACE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """How many jobs a worker leases, for how long, and how long it drains."""

    slots: int
    ahead: int
    lease_seconds: float
    drain_seconds: float
    max_attempts: int


class Worker:
    """Runs jobs until it is drained."""

    def __init__(
        self,
        runner: AttemptRunner,
        queue: Queue,
        config: WorkerConfig,
        prefetcher: InstrumentationPrefetcher | None = None,
    ) -> None:
        self.lease_request = LeaseRequest(uuid4(), config.lease_seconds)
        self.config = config
        self._runner = runner
        self._queue = queue
        self._prefetcher = prefetcher
        self._windows = LeaseWindows(self._start, self._check_early_cancellations)
        self._running: dict[UUID, tuple[int, asyncio.Task[None]]] = {}
        self._programs: set[asyncio.Task[Any]] = set()
        self._drained_at: float | None = None
        self._more_may_wait = True
        self._wake = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._loops: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._loops = [
            self._group.create_task(self._keep_claiming()),
            self._group.create_task(self._keep_renewing()),
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
            released = await self._queue.release(self.lease_request.worker)
            log.info("%d jobs go back to the queue for other workers", released)
        await self._group.__aexit__(kind, error, trace)

    async def drain(self) -> None:
        """Lease no more jobs, and wait for running ones for up to `drain_seconds`.

        The time counts from the first call, however often this is called. Cancelling a call ends it
        at once.
        """
        self._loops[0].cancel()
        if self._drained_at is None:
            self._drained_at = time.monotonic() + self.config.drain_seconds
        tasks = self._tasks
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=max(0.0, self._drained_at - time.monotonic()))
        except asyncio.CancelledError:
            self._drained_at = time.monotonic()
            raise

    @property
    def _tasks(self) -> list[asyncio.Task[Any]]:
        return [*(task for _, task in self._running.values()), *self._programs]

    @property
    def is_draining(self) -> bool:
        """Return whether this worker starts nothing more."""
        return self._drained_at is not None

    @property
    def busy(self) -> int:
        """Return how many jobs this worker has."""
        return len(self._running)

    @property
    def programs(self) -> int:
        """Return how many ad hoc programs are in the sandbox or next to enter it."""
        return len(self._programs)

    async def run_program(
        self, program: AdHocProgram, limits: Limits, wait_seconds: float
    ) -> Execution:
        """Run an ad hoc program beside the jobs, in a slot no job is leased for meanwhile.

        Raises:
            TimeoutError: when no slot came free in `wait_seconds`.
            InfrastructureError: when no sandbox could start, or one was lost.
        """
        sandbox = self._runner.stages.sandbox
        task = asyncio.ensure_future(sandbox.run(program, limits, wait_seconds))
        self._programs.add(task)
        try:
            return await task
        finally:
            self._programs.discard(task)
            self._wake_if_more_may_wait()

    @property
    def free_slots(self) -> int:
        """Return how many more jobs this worker may lease."""
        if self._drained_at is not None:
            return 0
        most = 1 if self._runner.breaker.is_open else self.config.slots + self.config.ahead
        programs = min(len(self._programs), most - 1)  # one slot is left for jobs
        return most - programs - len(self._running) - self._windows.reserved_slots

    @property
    def can_lease_at_once(self) -> bool:
        """Return whether a job may be leased to this worker as it is accepted."""
        return self.free_slots > 0 and not self._runner.breaker.is_open

    @contextmanager
    def lease_window(self, slots: int = 1) -> Iterator[list[LeasedJob]]:
        """Cover a statement that may lease so many jobs to this worker; see `LeaseWindows`."""
        try:
            with self._windows.open(slots) as leased:
                yield leased
        finally:
            self._wake_if_more_may_wait()  # a slot that was reserved in vain is free again

    def runs(self, job_id: UUID) -> bool:
        """Return whether this worker runs a job, and so will notify of its end."""
        return job_id in self._running and not self._running[job_id][1].done()

    def _start(self, job: LeasedJob) -> None:
        if job.job_id in self._running:
            # This worker lost the job, and leased it again before it noticed.
            self._running[job.job_id][1].cancel()
        task = self._group.create_task(self._runner.run(job))
        self._running[job.job_id] = job.attempt, task
        task.add_done_callback(lambda _: self._forget(job))

    def _forget(self, job: LeasedJob) -> None:
        # The task of a lost attempt may end after the next attempt has started here.
        if self._running.get(job.job_id, (None,))[0] == job.attempt:
            del self._running[job.job_id]
        self._wake_if_more_may_wait()

    async def revoke_if_lost(self, *job_ids: UUID) -> None:
        """Stop those of these jobs that run here under a lease that has ended.

        If the database does not answer, the next heartbeat finds out.
        """
        self._windows.remember_ended(job_ids)
        ours = [job_id for job_id in job_ids if job_id in self._running]
        if not ours:
            return
        await asyncio.sleep(_GRACE_SECONDS)  # most jobs end because this worker has ended them
        with suppress(InfrastructureError):
            await self._renew_leases(ours)

    def _check_early_cancellations(self, job_ids: set[UUID]) -> None:
        self._group.create_task(self.revoke_if_lost(*job_ids))

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self.config.lease_seconds / 3)
            with suppress(InfrastructureError):
                await self._renew_leases(list(self._running))

    async def _renew_leases(self, job_ids: list[UUID]) -> None:
        """Renew the leases of these jobs, and stop those whose lease has ended."""
        held = {job_id: self._running[job_id] for job_id in job_ids if job_id in self._running}
        if not held:
            return
        renewed = await self._queue.renew(self.lease_request, held)
        for job_id, (attempt, task) in held.items():
            # The attempt is part of the comparison: a lost job may be leased to this worker again.
            if renewed.get(job_id) != attempt and not (task.done() or task.cancelling()):
                # A trainer cancels a few hundred jobs in one step.
                log.info("job %s is stopped: its lease has ended", job_id)
                task.cancel()

    def wake(self) -> None:
        """Claim jobs now, or else as soon as a slot is free."""
        self._more_may_wait = True
        self._wake.set()

    def _wake_if_more_may_wait(self) -> None:
        """Claim again after a slot came free, unless the last claim emptied the queue."""
        if self._more_may_wait:
            self._wake.set()

    async def _keep_claiming(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._wake.wait()
            await asyncio.sleep(self._runner.breaker.pause_seconds)
            # Cleared before the claim: a notification that arrives while the statement runs, about
            # a job the statement did not see, sets the event again and makes for another claim.
            self._wake.clear()
            with suppress(InfrastructureError):  # the store has logged it
                await self._claim_all()

    async def _claim_all(self) -> None:
        while (slots := self.free_slots) > 0:
            # Reset before the statement, for the same reason.
            self._more_may_wait = False
            task_ids = self._runner.registry.prepared_ids()
            with self.lease_window(slots) as leased:
                leased.extend(await self._queue.claim(self.lease_request, slots, task_ids))
            if len(leased) < slots:
                break
            self._more_may_wait = True
        if self._prefetcher is not None:
            await self._prefetcher.prefetch(self._queue)
