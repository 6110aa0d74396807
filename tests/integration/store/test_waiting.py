"""Waiting costs the database nothing, and no end is missed, notified or not."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest_asyncio
from sqlalchemy import event

from reward_server.jobs.admission import Admission
from reward_server.jobs.batch_progress import BatchProgress, follow
from reward_server.jobs.deadlines import DeadlineConfig
from reward_server.jobs.notifier import CompletionNotifier
from reward_server.jobs.service import JobService
from reward_server.jobs.workers.prefetcher import InstrumentationPrefetcher
from reward_server.store.batches import Batches
from reward_server.store.queue import Queue
from reward_server.store.values import JobState, NewJob, StoredAnswer
from reward_server.tasks.registry import Registry
from tests.integration.store.examples import CLAIM, SUBMISSION, verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.model import Program
    from reward_server.store.queries import Store

MANY = 300


@pytest_asyncio.fixture
async def notifier(engine: AsyncEngine) -> CompletionNotifier:
    return CompletionNotifier(Queue(engine))


@pytest_asyncio.fixture
async def service(
    engine: AsyncEngine, store: Store, notifier: CompletionNotifier, tmp_path: Path
) -> JobService:
    admission = Admission(Queue(engine), notifier, 20_000, {})
    deadlines = DeadlineConfig(1, 1, 1, 1, 1, 1, 1)
    return JobService(store, Batches(engine), Registry(tmp_path), notifier, admission, deadlines)


@contextmanager
def listening(engine: AsyncEngine) -> Iterator[list[tuple[str, object]]]:
    """Give all statements that are made meanwhile, with their parameters."""
    made: list[tuple[str, object]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        made.append((statement, parameters))

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    try:
        yield made
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", note)


async def accept(store: Store, count: int) -> list[UUID]:
    return [(await store.accept(NewJob(SUBMISSION, "digest"), CLAIM)).job_id for _ in range(count)]


async def end(store: Store, job_id: UUID) -> StoredAnswer:
    return await store.record(job_id, 1, verdict())


async def settle(notifier: CompletionNotifier, count: int) -> None:
    """Give those who begin to wait the time to have asked once."""
    await until(lambda: len(notifier._subscriptions) >= count)
    await asyncio.sleep(0.2)


async def until(happens: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not happens():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def test_waiting_clients_hold_no_connection_and_share_one_query(
    service: JobService, store: Store, notifier: CompletionNotifier, engine: AsyncEngine
) -> None:
    jobs = await accept(store, MANY)
    with listening(engine) as made:
        waiting = [asyncio.create_task(service.wait(job_id, None)) for job_id in jobs[:-50]]
        waiting += [asyncio.create_task(service.wait_for_any(jobs[-50:], 3600)) for _ in range(50)]  # type: ignore[arg-type]
        pool: Any = engine.sync_engine.pool
        await until(lambda: len(made) == MANY and pool.checkedout() == 0)
        await asyncio.sleep(0.5)
        await notifier.poll()
        assert len(made) == MANY + 1
    assert not any(task.done() for task in waiting)
    notifier.stop()
    left = await asyncio.gather(*waiting)
    assert left == [JobState.RUNNING] * (MANY - 50) + [{}] * 50


async def test_polling_finds_an_end_without_a_notification(
    service: JobService, store: Store, notifier: CompletionNotifier
) -> None:
    jobs = await accept(store, 3)
    one = asyncio.create_task(service.wait(jobs[0], None))
    other = asyncio.create_task(service.wait(jobs[1], None))
    many = asyncio.create_task(service.wait_for_any([jobs[0], jobs[2]], 3600))
    await settle(notifier, 3)
    answer = await end(store, jobs[0])
    await notifier.poll()
    assert await one == answer
    assert await many == {jobs[0]: answer}
    assert not other.done()
    notifier.notify(jobs[1], await end(store, jobs[1]))
    assert isinstance(await other, StoredAnswer)


async def test_an_answer_in_a_notification_is_not_read_again(
    service: JobService, store: Store, notifier: CompletionNotifier, engine: AsyncEngine
) -> None:
    jobs = await accept(store, 2)
    one = asyncio.create_task(service.wait(jobs[0], None))
    many = asyncio.create_task(service.wait_for_any(jobs, 3600))
    await settle(notifier, 2)
    answer = await end(store, jobs[0])
    with listening(engine) as made:
        notifier.notify(jobs[0], answer)
        assert await one == answer
        assert await many == {jobs[0]: answer}
    assert made == []


async def test_a_wait_continues_while_a_job_is_retried(
    service: JobService, store: Store, notifier: CompletionNotifier
) -> None:
    (job_id,) = await accept(store, 1)
    one = asyncio.create_task(service.wait(job_id, None))
    await settle(notifier, 1)
    notifier.notify(job_id)  # a fault that may pass
    await asyncio.sleep(0.2)
    assert not one.done()
    notifier.notify(job_id, await end(store, job_id))
    assert isinstance(await one, StoredAnswer)


async def follow_all(
    engine: AsyncEngine, notifier: CompletionNotifier, batch_id: UUID
) -> AsyncIterator[BatchProgress]:
    batches = Batches(engine)
    batch = await batches.get(batch_id)
    assert batch is not None
    async for progress in follow(batches, notifier, batch, 3600):
        yield progress


async def test_a_batch_is_read_once_and_then_only_its_ended_items(
    store: Store, notifier: CompletionNotifier, engine: AsyncEngine
) -> None:
    orders = [NewJob(SUBMISSION, "digest", f"k{n // 2}") for n in range(40)]
    batch_id, jobs = await Batches(engine).create(orders, 40, cancels_rest=False)
    await Queue(engine).claim(CLAIM, 20, ["spaceship"])
    early, told, missed, *rest = dict.fromkeys(jobs)
    await end(store, early)
    steps = follow_all(engine, notifier, batch_id)
    first = await anext(steps)
    assert [item.index for item in first.ended] == [0, 1]
    with listening(engine) as made:
        notifier.notify(told, answer := await end(store, told))
        made.clear()
        second = await anext(steps)
        assert made == []
        assert [item.index for item in second.ended] == [2, 3]
        assert second.answers == {told: answer}
        await end(store, missed)
        made.clear()
        await notifier.poll()
        third = await anext(steps)
        assert [item.index for item in third.ended] == [4, 5]
        assert len(made) == 2
        assert str(rest[0]) not in str(made[1])
    for job_id in rest:
        notifier.notify(job_id, await end(store, job_id))
    last = await anext(steps)
    assert last.is_complete
    assert [item.index for item in last.ended] == list(range(6, 40))
    assert [one async for one in steps] == []


async def test_a_waiting_program_is_read_once_for_prefetching(
    store: Store, engine: AsyncEngine
) -> None:
    queue, asked = Queue(engine), _Asked()
    prefetcher = InstrumentationPrefetcher(asked, 10)  # type: ignore[arg-type]
    try:
        for _ in range(3):
            await store.accept(NewJob(SUBMISSION, "digest"))
            prefetcher._next_at = 0.0
            with listening(engine) as made:
                await prefetcher.prefetch(queue)
            assert [str(SUBMISSION.code) in str(one) for one in made] == [False, False]
            assert str(made[1][1]).count("UUID") <= 1
        with listening(engine) as made:
            await prefetcher.prefetch(queue)
        assert made == []
        await until(lambda: len(asked.programs) == 3)
    finally:
        await prefetcher.aclose()


class _Asked:
    """Takes note of the programs it is shown."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    async def instrument(self, program: Program) -> None:
        self.programs.append(program)
