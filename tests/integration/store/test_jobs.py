from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import text

from reward_server.errors import InfrastructureError, RequestError
from reward_server.model import ErrorKind, Failure, Program, Verdict
from reward_server.store.engine import make_engine
from reward_server.store.queries import Store
from reward_server.store.queue import Queue
from reward_server.store.rows import storable
from reward_server.store.values import JobState, NewJob
from tests.integration.store.examples import CLAIM, FAILURE, SUBMISSION, verdict

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine


async def started(store: Store, key: str | None = None) -> tuple[UUID, int]:
    accepted = await store.accept(NewJob(SUBMISSION, "digest", key), CLAIM)
    assert accepted.state is JobState.RUNNING
    return accepted.job_id, accepted.attempt


async def count(engine: AsyncEngine, table: str) -> int:
    async with engine.connect() as connection:
        rows = await connection.execute(text(f"SELECT count(*) FROM {table}"))  # noqa: S608
        return int(rows.scalar_one())


async def test_a_job_row_has_all_that_running_it_again_takes(store: Store) -> None:
    submission = replace(SUBMISSION, parent_id=str(uuid4()))
    accepted = await store.accept(NewJob(submission, "digest", "key"))
    assert accepted.is_new
    job = await store.job(accepted.job_id)
    assert job is not None
    assert (job.submission, job.state, job.attempt) == (submission, JobState.QUEUED, 1)


async def test_without_a_key_every_job_is_new(store: Store) -> None:
    first = await store.accept(NewJob(SUBMISSION, "digest"))
    second = await store.accept(NewJob(SUBMISSION, "digest"))
    assert first.job_id != second.job_id
    assert second.is_new


async def test_the_same_key_joins_the_job(store: Store) -> None:
    job_id, _ = await started(store, "key")
    joined = await store.accept(NewJob(SUBMISSION, "digest", "key"))
    assert (joined.job_id, joined.is_new, joined.state) == (job_id, False, JobState.RUNNING)


async def test_the_same_key_with_another_body_is_a_conflict(store: Store) -> None:
    await store.accept(NewJob(SUBMISSION, "digest", "key"))
    with pytest.raises(RequestError) as caught:
        await store.accept(NewJob(SUBMISSION, "another", "key"))
    assert caught.value.kind is ErrorKind.CONFLICT


async def test_twenty_at_once_with_one_key_make_one_job(store: Store, engine: AsyncEngine) -> None:
    accepted = await asyncio.gather(
        *(store.accept(NewJob(SUBMISSION, "digest", "key")) for _ in range(20))
    )
    assert sum(one.is_new for one in accepted) == 1
    assert len({one.job_id for one in accepted}) == 1
    assert await count(engine, "jobs") == 1


async def test_only_one_of_many_requests_runs_an_errored_job_again(
    store: Store, engine: AsyncEngine
) -> None:
    job_id, attempt = await started(store, "key")
    assert await Queue(engine).fail(job_id, attempt, ErrorKind.SANDBOX_LOST, "gone")
    job = await store.job(job_id)
    assert job is not None
    assert job.error == Failure(ErrorKind.SANDBOX_LOST, "gone")

    accepted = await asyncio.gather(
        *(store.accept(NewJob(SUBMISSION, "digest", "key")) for _ in range(10))
    )
    assert sum(one.is_new for one in accepted) == 1
    assert {one.state for one in accepted} == {JobState.QUEUED}
    (claimed,) = await Queue(engine).claim(CLAIM, 5, ["spaceship"])
    assert (claimed.job_id, claimed.attempt) == (job_id, attempt + 1)
    with pytest.raises(InfrastructureError):
        await store.record(job_id, attempt, verdict())


async def test_an_errored_job_is_not_run_again_for_another_body(
    store: Store, engine: AsyncEngine
) -> None:
    job_id, attempt = await started(store, "key")
    await Queue(engine).fail(job_id, attempt, ErrorKind.SANDBOX_LOST, "gone")
    with pytest.raises(RequestError):
        await store.accept(NewJob(SUBMISSION, "another", "key"))
    job = await store.job(job_id)
    assert job is not None
    assert job.state is JobState.ERRORED


async def test_a_stored_verdict_is_read_back_whole(store: Store) -> None:
    job_id, attempt = await started(store)
    stored = await store.record(job_id, attempt, verdict())
    answer = await store.answer(job_id)
    assert answer is not None
    assert answer == stored
    expected = verdict()
    assert answer.submission == replace(SUBMISSION, code=None, wall_seconds=None)
    assert (answer.status, answer.failure) == (JobState.SCORED, None)
    assert answer.program_digest == expected.program.digest
    same = {one.name for one in fields(Verdict)} - {"submission"}
    assert {n: getattr(answer, n) for n in same} == {n: getattr(expected, n) for n in same}


async def test_a_failed_program_has_its_failure(store: Store) -> None:
    job_id, attempt = await started(store)
    await store.record(job_id, attempt, verdict(-9.8, failure=FAILURE))
    answer, job = await store.answer(job_id), await store.job(job_id)
    assert answer is not None
    assert job is not None
    assert (answer.status, answer.failure) == (JobState.FAILED, FAILURE)
    assert (job.state, job.error) == (JobState.FAILED, None)


async def test_recording_twice_gives_one_row(store: Store, engine: AsyncEngine) -> None:
    job_id, attempt = await started(store)
    first = await store.record(job_id, attempt, verdict(0.8))
    assert await store.record(job_id, attempt, verdict(0.1)) == first
    answer = await store.answer(job_id)
    assert answer is not None
    assert answer.reward.value == 0.8
    assert await count(engine, "solutions") == 1


async def test_concurrent_records_make_one_row(store: Store, engine: AsyncEngine) -> None:
    job_id, attempt = await started(store)
    stored = await asyncio.gather(*(store.record(job_id, attempt, verdict()) for _ in range(10)))
    assert len({one.solution_id for one in stored}) == 1
    assert await count(engine, "solutions") == 1


async def test_a_cancelled_job_takes_no_result(store: Store) -> None:
    job_id, attempt = await started(store)
    assert await store.cancel(job_id)
    assert not await store.cancel(job_id)
    with pytest.raises(InfrastructureError) as caught:
        await store.record(job_id, attempt, verdict())
    assert caught.value.kind is ErrorKind.CANCELLED


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), float("-inf")])
async def test_a_reward_that_is_not_finite_is_refused(store: Store, reward: float) -> None:
    job_id, attempt = await started(store)
    with pytest.raises(InfrastructureError) as caught:
        await store.record(job_id, attempt, verdict(reward))
    assert caught.value.kind is ErrorKind.STORE_ERROR
    assert await store.answer(job_id) is None
    await store.record(job_id, attempt, verdict())


async def test_texts_that_postgres_cannot_hold_are_made_storable(store: Store) -> None:
    nasty = "a\x00b\ud800c\udfffé😀"
    tidy = "a\ufffdb\ufffdc\ufffdé😀"
    assert storable(nasty) == tidy
    submission = replace(SUBMISSION, code=nasty, sample_id=nasty)
    accepted = await store.accept(NewJob(submission, "digest", nasty), CLAIM)
    outcome = verdict(program=Program(nasty, nasty), stdout_tail=nasty)
    await store.record(accepted.job_id, accepted.attempt, outcome)
    answer = await store.answer(accepted.job_id)
    assert answer is not None
    assert answer.program == Program(tidy, tidy)
    assert (answer.execution.stdout_tail, answer.submission.sample_id) == (tidy, tidy)
    assert not (await store.accept(NewJob(submission, "digest", nasty))).is_new


@pytest.mark.parametrize("text", ["", "plain", "a\x00", "\ud83d\ude00", "é\x00\udc00"])
def test_storable_text_can_be_encoded_and_keeps_its_length(text: str) -> None:
    made = storable(text)
    made.encode()
    assert "\x00" not in made
    assert len(made) == len(text)


async def test_a_parent_that_is_no_id_is_refused(store: Store) -> None:
    with pytest.raises(RequestError):
        await store.accept(NewJob(replace(SUBMISSION, parent_id="x"), "digest"))


async def test_an_unreachable_database_is_a_store_error() -> None:
    engine = make_engine("postgres://nobody@/none?host=/nonexistent")
    with pytest.raises(InfrastructureError) as caught:
        await Store(engine).ping()
    assert caught.value.kind is ErrorKind.STORE_ERROR
    await engine.dispose()


async def test_a_connection_that_the_server_closed_is_replaced(
    store: Store, database_url: str
) -> None:
    engine = make_engine(database_url, pool_size=1)
    other = Store(engine)
    await other.ping()
    async with store._engine.connect() as connection:
        await connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )
    await asyncio.sleep(0.1)
    await other.ping()
    await engine.dispose()


async def test_cancelling_steps_covers_queued_and_running_jobs(
    store: Store, engine: AsyncEngine
) -> None:
    async def add(step: int | None, run_id: str = "r", client: str = "a") -> UUID:
        submission = replace(SUBMISSION, run_id=run_id, step=step)
        return (await store.accept(NewJob(submission, "digest", client=client))).job_id

    ended = await add(1)
    await store.cancel(ended)
    lent = await add(2)
    await Queue(engine).claim(CLAIM, 1, ["spaceship"])
    waits = await add(3)
    others = [await add(4), await add(None), await add(1, run_id="s"), await add(1, client="b")]
    assert set(await store.cancel_steps("r", 3, "a")) == {lent, waits}
    states = [job.state for job_id in others if (job := await store.job(job_id))]
    assert states == [JobState.QUEUED] * 4
    with pytest.raises(InfrastructureError) as caught:
        await store.record(lent, 1, verdict())
    assert caught.value.kind is ErrorKind.CANCELLED


async def test_cancelling_steps_covers_jobs_being_leased_meanwhile(
    store: Store, engine: AsyncEngine
) -> None:
    submission = replace(SUBMISSION, run_id="r", step=1)
    jobs = [(await store.accept(NewJob(submission, "digest"))).job_id for _ in range(40)]
    claims = [Queue(engine).claim(CLAIM, 5, ["spaceship"]) for _ in range(4)]
    cancelled, _ = await asyncio.gather(store.cancel_steps("r", 1, ""), asyncio.gather(*claims))
    assert sorted(cancelled) == sorted(jobs)
    assert await Queue(engine).claim(CLAIM, 5, ["spaceship"]) == []
