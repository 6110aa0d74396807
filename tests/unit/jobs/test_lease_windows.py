"""The races between the database's leases and this worker's tasks, with a queue under control.

Only a fake queue can hold a statement between its commit and its reply.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from reward_server.jobs.workers.circuit_breaker import CircuitBreaker
from reward_server.jobs.workers.worker import Worker, WorkerConfig
from reward_server.model import Submission
from reward_server.store.values import LeasedJob

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable

    from reward_server.store.values import LeaseRequest

SLOTS = 2


class ControlledQueue:
    """A queue whose claims reply only when the test lets them."""

    def __init__(self) -> None:
        self.waiting: list[LeasedJob] = []
        self.leases: dict[UUID, int] = {}
        self.claims: list[int] = []
        self.may_reply = asyncio.Event()
        self.may_reply.set()

    async def claim(self, _: LeaseRequest, most: int, __: Iterable[str]) -> list[LeasedJob]:
        self.claims.append(most)
        leased, self.waiting = self.waiting[:most], self.waiting[most:]
        self.leases.update({job.job_id: job.attempt for job in leased})  # it commits here
        await self.may_reply.wait()
        return leased

    async def renew(self, _: LeaseRequest, job_ids: Collection[UUID]) -> dict[UUID, int]:
        return {job_id: self.leases[job_id] for job_id in job_ids if job_id in self.leases}

    async def release(self, _: UUID) -> int:
        return 0


class RecordingRunner:
    """Runs each attempt until it is cancelled or the test ends it."""

    def __init__(self) -> None:
        self.breaker = CircuitBreaker()
        self.registry = SimpleNamespace(prepared_ids=tuple)
        self.running: dict[tuple[UUID, int], asyncio.Event] = {}
        self.cancelled: list[tuple[UUID, int]] = []

    async def run(self, job: LeasedJob) -> None:
        key = job.job_id, job.attempt
        self.running[key] = asyncio.Event()
        try:
            await self.running[key].wait()
        except asyncio.CancelledError:
            self.cancelled.append(key)
            raise
        finally:
            del self.running[key]


@asynccontextmanager
async def working(
    queue: ControlledQueue, runner: RecordingRunner, slots: int = SLOTS
) -> AsyncIterator[Worker]:
    config = WorkerConfig(slots, 0, lease_seconds=60, drain_seconds=0, max_attempts=3)
    fakes: tuple[Any, Any] = runner, queue
    async with Worker(*fakes, config) as worker:
        yield worker


def job(attempt: int = 1, job_id: UUID | None = None) -> LeasedJob:
    return LeasedJob(job_id or uuid4(), attempt, Submission("task"))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - nothing notifies of it
            await asyncio.sleep(0.005)


async def test_a_job_cancelled_before_the_claim_replies_is_stopped() -> None:
    queue, runner, one = ControlledQueue(), RecordingRunner(), job()
    queue.may_reply.clear()
    queue.waiting = [one]
    async with working(queue, runner) as worker:
        worker.wake()
        await until(lambda: one.job_id in queue.leases)
        del queue.leases[one.job_id]
        await worker.revoke_if_lost(one.job_id)
        queue.may_reply.set()
        await until(lambda: runner.cancelled == [(one.job_id, 1)])
        await until(lambda: worker.busy == 0)


async def test_a_job_cancelled_while_it_is_accepted_is_stopped() -> None:
    queue, runner, one = ControlledQueue(), RecordingRunner(), job()
    async with working(queue, runner) as worker:
        with worker.lease_window() as leased:
            await worker.revoke_if_lost(one.job_id)
            leased.append(one)
        await until(lambda: runner.cancelled == [(one.job_id, 1)])


async def test_a_job_cancelled_and_accepted_again_in_one_window_runs() -> None:
    queue, runner, one = ControlledQueue(), RecordingRunner(), job(attempt=2)
    async with working(queue, runner) as worker:
        with worker.lease_window() as leased:
            await worker.revoke_if_lost(one.job_id)
            queue.leases[one.job_id] = 2
            leased.append(one)
        await asyncio.sleep(0.3)  # longer than the check takes
        assert list(runner.running) == [(one.job_id, 2)]
        assert runner.cancelled == []


async def test_an_end_that_was_notified_before_the_window_changes_nothing() -> None:
    queue, runner, one = ControlledQueue(), RecordingRunner(), job()
    async with working(queue, runner) as worker:
        await worker.revoke_if_lost(one.job_id)
        with worker.lease_window() as leased:
            leased.append(one)
        assert worker._windows._open == []
        await asyncio.sleep(0.3)
        assert list(runner.running) == [(one.job_id, 1)]


async def test_a_job_lost_and_leased_to_the_same_worker_runs_once() -> None:
    queue, runner, first = ControlledQueue(), RecordingRunner(), job()
    second = job(attempt=2, job_id=first.job_id)
    async with working(queue, runner) as worker:
        for attempt in (first, second):
            with worker.lease_window() as leased:
                leased.append(attempt)
            queue.leases[attempt.job_id] = attempt.attempt
            await until(lambda one=attempt: (one.job_id, one.attempt) in runner.running)  # type: ignore[misc]
        await until(lambda: runner.cancelled == [(first.job_id, 1)])
        await worker.revoke_if_lost(first.job_id)
        assert list(runner.running) == [(first.job_id, 2)]
        assert worker.runs(first.job_id)


async def test_an_attempt_that_is_no_longer_current_is_stopped() -> None:
    queue, runner, first = ControlledQueue(), RecordingRunner(), job()
    async with working(queue, runner) as worker:
        with worker.lease_window() as leased:
            leased.append(first)
        await until(lambda: (first.job_id, 1) in runner.running)
        queue.leases[first.job_id] = 2  # leased to this worker again, and not yet known here
        await worker.revoke_if_lost(first.job_id)
        await until(lambda: runner.cancelled == [(first.job_id, 1)])


async def test_a_cancellation_of_the_next_attempt_is_kept_past_the_old_one() -> None:
    queue, runner, first = ControlledQueue(), RecordingRunner(), job()
    async with working(queue, runner) as worker:
        with worker.lease_window() as leased:
            leased.append(first)
        with worker.lease_window() as leased:
            await worker.revoke_if_lost(first.job_id)  # finds and stops the lost attempt
            leased.append(job(attempt=2, job_id=first.job_id))
        await until(lambda: runner.cancelled == [(first.job_id, 1), (first.job_id, 2)])


async def test_open_windows_reserve_their_slots() -> None:
    queue, runner = ControlledQueue(), RecordingRunner()
    queue.may_reply.clear()
    async with working(queue, runner) as worker:
        with worker.lease_window():
            assert worker.free_slots == SLOTS - 1
            worker.wake()
            await until(lambda: queue.claims == [SLOTS - 1])
            assert not worker.can_lease_at_once
        queue.may_reply.set()
        await until(lambda: worker.free_slots == SLOTS)


async def test_a_statement_that_fails_gives_its_slot_back() -> None:
    queue, runner = ControlledQueue(), RecordingRunner()
    async with working(queue, runner) as worker:
        with suppress(ZeroDivisionError), worker.lease_window():
            1 / 0  # noqa: B018
        assert worker.free_slots == SLOTS


async def test_a_notification_during_a_claim_makes_for_another_claim() -> None:
    queue, runner, late = ControlledQueue(), RecordingRunner(), job()
    queue.may_reply.clear()
    async with working(queue, runner) as worker:
        worker.wake()
        await until(lambda: len(queue.claims) == 1)
        queue.waiting = [late]  # the claim under way does not see it
        worker.wake()
        async with asyncio.timeout(0.5):  # well before the worker polls by itself
            queue.may_reply.set()
            while (late.job_id, 1) not in runner.running:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


async def test_a_notification_while_all_slots_are_busy_is_not_forgotten() -> None:
    queue, runner, first, late = ControlledQueue(), RecordingRunner(), job(), job()
    async with working(queue, runner, slots=1) as worker:
        worker.wake()
        await until(lambda: len(queue.claims) == 1)  # it finds the queue empty
        with worker.lease_window() as leased:
            leased.append(first)
        await until(lambda: (first.job_id, 1) in runner.running)
        queue.waiting = [late]
        worker.wake()
        await asyncio.sleep(0.05)
        async with asyncio.timeout(0.5):
            runner.running[first.job_id, 1].set()
            while (late.job_id, 1) not in runner.running:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
