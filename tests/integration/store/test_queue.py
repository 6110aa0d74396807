"""Workers lease jobs in turn, for a limited time, and never two workers the same job."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import text

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind, Priority
from reward_server.store.queue import Queue
from reward_server.store.values import JobState, LeaseRequest, NewJob
from tests.integration.store.examples import CLAIM, SUBMISSION, verdict

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.store.queries import Store
    from reward_server.store.values import LeasedJob

TASKS = ["spaceship"]
OTHER = LeaseRequest(uuid4(), 60.0)


@pytest_asyncio.fixture
async def queue(engine: AsyncEngine, store: Store) -> Queue:
    del store  # it has emptied the tables
    return Queue(engine)


async def add(store: Store, run_id: str = "default", **options: object) -> UUID:
    submission = replace(SUBMISSION, run_id=run_id)
    return (await store.accept(NewJob(submission, "digest", **options))).job_id  # type: ignore[arg-type]


async def take(queue: Queue, most: int = 1, claim: LeaseRequest = CLAIM) -> list[LeasedJob]:
    return await queue.claim(claim, most, TASKS)


async def run_ids(queue: Queue, count: int) -> list[str]:
    return [(await take(queue))[0].submission.run_id for _ in range(count)]


async def let_lapse(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(
            text("UPDATE jobs SET lease_until = now() - interval '1 s' WHERE state = 'running'")
        )


async def test_the_oldest_job_is_leased_first_and_to_one_worker(store: Store, queue: Queue) -> None:
    jobs = [await add(store) for _ in range(3)]
    (first,) = await take(queue)
    assert (first.job_id, first.attempt, first.submission) == (jobs[0], 1, SUBMISSION)
    assert first.waited_seconds >= 0
    assert [job.job_id for job in await take(queue, 5, OTHER)] == jobs[1:]
    assert await take(queue, 5) == []


async def test_concurrent_workers_share_the_queue(store: Store, queue: Queue) -> None:
    jobs = {await add(store) for _ in range(40)}
    claims = [LeaseRequest(uuid4(), 60.0) for _ in range(8)]
    taken = await asyncio.gather(*(take(queue, 5, claim) for claim in claims for _ in range(3)))
    ids = [job.job_id for one in taken for job in one]
    assert len(ids) == len(set(ids))
    ids += [job.job_id for job in await take(queue, 40)]
    assert set(ids) == jobs


async def test_runs_take_turns_however_many_jobs_one_has(store: Store, queue: Queue) -> None:
    for _ in range(30):
        await add(store, "large")
    for _ in range(3):
        await add(store, "small")
    order = await run_ids(queue, 8)
    assert order[:6].count("small") == 3
    assert order[6:] == ["large", "large"]


async def test_runs_take_turns_with_a_single_slot(store: Store, queue: Queue) -> None:
    for run, count in (("large", 20), ("small", 3)):
        for _ in range(count):
            await add(store, run)
    order = []
    for _ in range(8):
        (job,) = await take(queue)
        await store.record(job.job_id, job.attempt, verdict())
        order.append(job.submission.run_id)
    assert order == ["large", "small"] * 3 + ["large"] * 2


async def test_a_batch_of_claims_is_fair_as_well(store: Store, queue: Queue) -> None:
    for run, count in (("a", 20), ("b", 2), ("c", 20)):
        for _ in range(count):
            await add(store, run)
    runs = [job.submission.run_id for job in await take(queue, 8)]
    assert sorted(runs) == ["a"] * 3 + ["b"] * 2 + ["c"] * 3


async def test_evaluation_jobs_go_before_training_jobs(store: Store, queue: Queue) -> None:
    await add(store, "training")
    urgent = await add(store, "training", priority=Priority.EVALUATION)
    assert [job.job_id for job in await take(queue)] == [urgent]


async def test_a_worker_leases_only_tasks_that_it_has(store: Store, queue: Queue) -> None:
    await add(store)
    assert await queue.claim(CLAIM, 5, ["another"]) == []
    assert len(await take(queue)) == 1


async def test_an_expired_lease_counts_as_a_fault_and_fences_its_worker(
    store: Store, queue: Queue, engine: AsyncEngine
) -> None:
    job_id = await add(store)
    (stale,) = await take(queue)
    assert await queue.renew(CLAIM, [job_id]) == {job_id: 1}
    await let_lapse(engine)
    assert await queue.expire(3) == 1
    assert await queue.renew(CLAIM, [job_id]) == {}
    with pytest.raises(InfrastructureError) as caught:
        await store.record(job_id, stale.attempt, verdict())
    assert caught.value.kind is ErrorKind.WORKER_LOST
    assert not await queue.fail(job_id, stale.attempt, ErrorKind.SANDBOX_LOST, "gone")
    (current,) = await take(queue, 1, OTHER)
    assert current.attempt == stale.attempt + 1
    await store.record(job_id, current.attempt, verdict())


async def test_a_worker_is_fenced_from_an_earlier_attempt_of_its_own(
    store: Store, queue: Queue, engine: AsyncEngine
) -> None:
    job_id = await add(store)
    (stale,) = await take(queue)
    await let_lapse(engine)
    await queue.expire(3)
    await take(queue)
    assert await queue.renew(CLAIM, [job_id]) == {job_id: 2}
    with pytest.raises(InfrastructureError):
        await store.record(job_id, stale.attempt, verdict())


async def test_a_job_without_attempts_left_ends_with_worker_lost(
    store: Store, queue: Queue, engine: AsyncEngine
) -> None:
    job_id = await add(store)
    for _ in range(2):
        assert len(await take(queue)) == 1
        await let_lapse(engine)
        await queue.expire(2)
    assert await take(queue) == []
    job = await store.job(job_id)
    assert job is not None
    assert job.error is not None
    assert (job.state, job.error.kind) == (JobState.ERRORED, ErrorKind.WORKER_LOST)


async def test_a_retry_waits_and_counts(store: Store, queue: Queue) -> None:
    job_id = await add(store)
    (job,) = await take(queue)
    assert await queue.retry(job_id, job.attempt, 2, 3600.0)
    assert await take(queue) == []
    stored = await store.job(job_id)
    assert stored is not None
    assert (stored.state, stored.attempt, stored.faults) == (JobState.QUEUED, 2, 1)
    assert not await queue.retry(job_id, job.attempt, 2, 0.0)


async def test_the_last_attempt_is_not_retried(store: Store, queue: Queue) -> None:
    job_id = await add(store)
    (job,) = await take(queue)
    assert not await queue.retry(job_id, job.attempt, 1, 0.0)
    assert await queue.fail(job_id, job.attempt, ErrorKind.SANDBOX_LOST, "gone")


async def test_all_attempts_of_a_job_share_one_deadline(store: Store, queue: Queue) -> None:
    job_id = await add(store, budget_seconds=0.0)
    (job,) = await take(queue)
    assert job.left_seconds <= 0
    assert not await queue.retry(job_id, job.attempt, 5, 0.0)


async def test_a_released_job_loses_no_attempt(store: Store, queue: Queue) -> None:
    job_id = await add(store)
    await take(queue)
    assert await queue.release(CLAIM.worker) == 1
    (again,) = await take(queue, 1, OTHER)
    job = await store.job(job_id)
    assert job is not None
    assert (again.attempt, job.faults) == (2, 0)


async def test_jobs_of_a_dead_worker_are_requeued_at_once(store: Store, queue: Queue) -> None:
    await add(store)
    await take(queue)
    assert await queue.workers() == {CLAIM.worker}
    assert await queue.expire(3) == 0
    assert await queue.expire(3, [CLAIM.worker]) == 1


async def test_a_job_that_no_worker_takes_ends(store: Store, queue: Queue) -> None:
    job_id = await add(store)
    assert await queue.give_up(3600) == 0
    assert await queue.give_up(0) == 1
    job = await store.job(job_id)
    assert job is not None
    assert job.error is not None
    assert job.error.kind is ErrorKind.SANDBOX_UNAVAILABLE


async def test_a_cancelled_job_runs_again_only_when_it_is_sent_again(
    store: Store, queue: Queue
) -> None:
    job_id = await add(store, idempotency_key="key")
    assert await store.cancel(job_id)
    assert await take(queue) == []
    assert await add(store, idempotency_key="key") == job_id
    (job,) = await take(queue)
    assert (job.job_id, job.attempt) == (job_id, 2)


async def test_the_queue_state_counts_jobs_by_client(store: Store, queue: Queue) -> None:
    await add(store, client="a")
    await add(store, client="a")
    await add(store, client="b")
    await take(queue)
    state = await queue.state()
    assert (state.queued, state.running) == (2, 1)
    assert state.queued_of == {"a": 1, "b": 1}
    assert state.oldest_seconds >= 0


async def test_a_job_cannot_run_without_a_lease(store: Store, engine: AsyncEngine) -> None:
    await add(store)
    with pytest.raises(Exception, match="running_is_leased"):
        async with engine.connect() as connection:
            await connection.execute(text("UPDATE jobs SET state = 'running'"))
