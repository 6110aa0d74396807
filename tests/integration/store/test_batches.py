"""Batches are created completely or not at all, and are closed once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from sqlalchemy import event

from reward_server.errors import RequestError
from reward_server.model import ErrorKind
from reward_server.store.batches import Batches
from reward_server.store.queue import Queue
from reward_server.store.values import JobState, NewJob
from tests.integration.store.examples import CLAIM, SUBMISSION, verdict

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.store.queries import Store


@pytest_asyncio.fixture
async def batches(engine: AsyncEngine, store: Store) -> Batches:
    del store  # it has emptied the tables
    return Batches(engine)


def orders(count: int, key: str | None = None) -> list[NewJob]:
    return [
        NewJob(replace(SUBMISSION, sample_id=str(n)), "digest", key and f"{key}{n}")
        for n in range(count)
    ]


async def finish(store: Store, queue: Queue, count: int) -> list[UUID]:
    ended = []
    for job in await queue.claim(CLAIM, count, ["spaceship"]):
        await store.record(job.job_id, job.attempt, verdict())
        ended.append(job.job_id)
    return ended


async def states(batches: Batches, batch_id: UUID) -> list[JobState]:
    batch = await batches.get(batch_id)
    assert batch is not None
    return [item.state for item in sorted(batch.items, key=lambda item: item.index)]


async def test_a_batch_has_its_jobs_in_order(batches: Batches, store: Store) -> None:
    batch_id, jobs = await batches.create(orders(3), 2, cancels_rest=False)
    batch = await batches.get(batch_id)
    assert batch is not None
    assert [(item.index, item.job_id) for item in batch.items] == list(enumerate(jobs))
    assert (batch.min_complete, batch.cancels_rest) == (2, False)
    for index, job_id in enumerate(jobs):
        job = await store.job(job_id)
        assert job is not None
        assert job.submission.sample_id == str(index)


async def test_a_conflict_creates_no_job_of_the_batch(
    batches: Batches, store: Store, engine: AsyncEngine
) -> None:
    await store.accept(NewJob(SUBMISSION, "another", "k2"))
    with pytest.raises(RequestError) as caught:
        await batches.create(orders(4, "k"), 4, cancels_rest=False)
    assert caught.value.kind is ErrorKind.CONFLICT
    assert (await Queue(engine).state()).queued == 1


async def test_a_key_that_occurs_twice_in_a_batch_is_one_job(batches: Batches) -> None:
    twice = [NewJob(SUBMISSION, "digest", "same")] * 2
    _, jobs = await batches.create(twice, 2, cancels_rest=False)
    assert jobs[0] == jobs[1]
    again, joined = await batches.create(twice, 2, cancels_rest=True)
    assert joined == jobs
    assert await states(batches, again) == [JobState.QUEUED] * 2


async def test_batches_with_the_same_keys_do_not_deadlock(batches: Batches) -> None:
    forward, backward = orders(20, "k"), orders(20, "k")[::-1]
    made = await asyncio.gather(
        *(batches.create(one, 1, cancels_rest=False) for one in (forward, backward) * 4)
    )
    assert len({frozenset(jobs) for _, jobs in made}) == 1


async def test_one_key_with_two_bodies_is_a_conflict_within_a_batch(batches: Batches) -> None:
    two = [NewJob(SUBMISSION, body, "same") for body in ("one", "another")]
    with pytest.raises(RequestError) as caught:
        await batches.create(two, 2, cancels_rest=False)
    assert caught.value.kind is ErrorKind.CONFLICT


async def test_a_cancelled_job_runs_again_as_the_batchs_own(
    batches: Batches, store: Store, engine: AsyncEngine
) -> None:
    known = [(await store.accept(order)).job_id for order in orders(3, "k")]
    await store.cancel(known[1])
    assert await batches.count_new(orders(4, "k")) == 2
    batch_id, jobs = await batches.create(orders(4, "k"), 1, cancels_rest=True)
    assert jobs[:3] == known
    assert await states(batches, batch_id) == [JobState.QUEUED] * 4
    await finish(store, Queue(engine), 1)
    assert await batches.close(batch_id) == 2
    others = [JobState.SCORED, JobState.CANCELLED, JobState.QUEUED, JobState.CANCELLED]
    assert await states(batches, batch_id) == others


async def test_a_large_batch_takes_few_statements_and_waits_in_its_order(
    batches: Batches, store: Store, engine: AsyncEngine
) -> None:
    made: list[str] = []

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        made.append(statement)

    mixed = orders(1200)
    mixed[::2] = orders(1200, "k")[::2]
    await store.accept(mixed[600])
    event.listen(engine.sync_engine, "before_cursor_execute", count)
    _, jobs = await batches.create(mixed, 1200, cancels_rest=False)
    event.remove(engine.sync_engine, "before_cursor_execute", count)
    assert len(made) < 10
    assert len(set(jobs)) == 1200
    first = await Queue(engine).claim(CLAIM, 6, ["spaceship"])
    assert {job.job_id for job in first} == {jobs[600], *jobs[:5]}


@pytest.mark.parametrize("cancels_rest", [True, False])
async def test_the_rest_of_a_complete_batch_continues_or_is_cancelled(
    batches: Batches, store: Store, engine: AsyncEngine, *, cancels_rest: bool
) -> None:
    queue = Queue(engine)
    batch_id, _ = await batches.create(orders(5), 2, cancels_rest=cancels_rest)
    assert await batches.close() == 0
    await finish(store, queue, 1)
    assert await batches.close() == 0
    await finish(store, queue, 1)
    assert await batches.close() == (3 if cancels_rest else 0)
    rest = JobState.CANCELLED if cancels_rest else JobState.QUEUED
    assert await states(batches, batch_id) == [JobState.SCORED] * 2 + [rest] * 3
    assert await batches.close() == 0


async def test_a_job_of_another_open_batch_is_not_cancelled(
    batches: Batches, store: Store, engine: AsyncEngine
) -> None:
    first, _ = await batches.create(orders(3, "k"), 1, cancels_rest=True)
    await batches.create(orders(2, "k"), 2, cancels_rest=False)
    await finish(store, Queue(engine), 1)
    assert await batches.close(first) == 1
    assert await states(batches, first) == [JobState.SCORED, JobState.QUEUED, JobState.CANCELLED]


async def test_items_come_in_the_order_in_which_they_ended(
    batches: Batches, store: Store, engine: AsyncEngine
) -> None:
    batch_id, jobs = await batches.create(orders(4), 4, cancels_rest=False)
    claimed = await Queue(engine).claim(CLAIM, 4, ["spaceship"])
    for job in claimed[::-1]:
        await store.record(job.job_id, job.attempt, verdict())
    batch = await batches.get(batch_id)
    assert batch is not None
    assert [item.job_id for item in batch.items] == jobs[::-1]
