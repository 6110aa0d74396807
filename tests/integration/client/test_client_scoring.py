"""What a trainer asks of the asynchronous client, against a real server."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.job_client import KEYS, TASK, JobClient, nap
from tests.support.relays import TcpRelay
from trainer_client import (
    Answer,
    AsyncRewardClient,
    DeadlineExceededError,
    Job,
    JobCancelledError,
    OverloadedError,
    RequestRefusedError,
    SampleLostError,
    Submission,
    TooLargeError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SUBMISSIONS, POLLS, OTHERS = 8, 3, 2
BROKEN = "("  # costs the server next to nothing


async def until(happens: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not happens():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.02)


async def test_an_answer_has_all_that_the_server_said(
    trainer: AsyncRewardClient, job_client: JobClient, run_id: str
) -> None:
    text = "A plan.\n```python\nprint(1)\n```\n"
    answer = await trainer.score(TASK, completion=text, run_id=run_id, step=3, sample_id="s")
    assert (answer.reward, answer.status, answer.run_id) == (-10, "failed", run_id)
    assert answer.error is not None
    assert (answer.error.kind, answer.error.blame) == ("no_submission", "program")
    assert answer.timings.total >= answer.duration_seconds >= 0
    assert answer.raw == job_client.answer(answer.job_id)
    named = {one.name for one in dataclasses.fields(Answer)}
    assert set(answer.raw) == named - {"raw"}
    assert [line["sample_id"] for line in job_client.solutions(run_id)] == ["s"]


async def test_a_text_that_is_no_unicode_is_scored_too(trainer: AsyncRewardClient) -> None:
    answer = await trainer.score(TASK, completion="\ud800 ```python\nprint('\udfff')\n```")
    assert answer.status == "failed"


async def test_a_wrong_request_is_no_lost_sample(trainer: AsyncRewardClient, url: str) -> None:
    key = str(uuid.uuid4())
    await trainer.score(TASK, code=BROKEN, idempotency_key=key)
    async with AsyncRewardClient(url, "no key of theirs") as stranger:
        wrong = [
            (stranger.score(TASK, code=BROKEN), 401, "unauthorized"),
            (trainer.score("no-such-task", code=BROKEN), 404, "unknown_task"),
            (trainer.score(TASK, code="[", idempotency_key=key), 409, "conflict"),
            (trainer.score(TASK), 422, "invalid_request"),
        ]
        for call, status, kind in wrong:
            with pytest.raises(RequestRefusedError) as caught:
                await call
            assert (caught.value.status, caught.value.kind) == (status, kind)
            assert not isinstance(caught.value, SampleLostError)


async def test_a_text_that_is_too_long_loses_only_its_sample(trainer: AsyncRewardClient) -> None:
    items = [Submission(TASK, completion="x" * (3 << 20)), Submission(TASK, code=BROKEN)]
    results = {one.index: one async for one in trainer.score_many(items)}
    assert isinstance(results[0].error, TooLargeError)
    assert isinstance(results[0].error, RequestRefusedError)
    assert results[1].answer is not None


async def test_hundreds_of_samples_wait_over_a_dozen_connections(
    url: str, job_client: JobClient, run_id: str
) -> None:
    filling = await asyncio.to_thread(job_client.fill, 120)
    with TcpRelay(url) as relay:
        async with AsyncRewardClient(relay.url, KEYS["team"]) as client:
            calls = [client.score(TASK, code=BROKEN, run_id=run_id) for _ in range(300)]
            waiting = asyncio.gather(*calls)
            await until(lambda: depth(job_client) == 300)
            for job_id in filling:
                await client.cancel(job_id)
            answers = await waiting
        assert len({answer.solution_id for answer in answers}) == 300
        assert SUBMISSIONS < relay.most_open <= SUBMISSIONS + POLLS + OTHERS
        assert relay.accepted <= 2 * (SUBMISSIONS + POLLS + OTHERS)


def depth(job_client: JobClient) -> int:
    lines = job_client.http.get("/metrics").text.splitlines()
    (line,) = [line for line in lines if line.startswith("reward_jobs_queued ")]
    return int(float(line.split()[1]))


async def test_a_new_job_does_not_wait_for_open_polls(
    trainer: AsyncRewardClient, job_client: JobClient
) -> None:
    slow = await trainer.submit(TASK, code=nap("63.5"))
    waiting = asyncio.create_task(trainer.wait(slow))
    await asyncio.to_thread(job_client.wait_for_program, "63.5")
    for _ in range(2 * POLLS):
        await trainer.score(TASK, code=BROKEN)
    assert not waiting.done()
    assert await trainer.cancel(slow) == "cancelled"
    with pytest.raises(JobCancelledError) as caught:
        await waiting
    assert caught.value.job_id == slow.job_id
    assert isinstance(caught.value, SampleLostError)


async def test_cancelling_steps_loses_their_samples_at_once(
    trainer: AsyncRewardClient, job_client: JobClient, run_id: str
) -> None:
    calls = [
        asyncio.create_task(trainer.score(TASK, code=nap(f"69.{n}"), run_id=run_id, step=n))
        for n in (1, 2)
    ]
    for n in (1, 2):
        await asyncio.to_thread(job_client.wait_for_program, f"69.{n}")
    assert await trainer.cancel_run(run_id, up_to_step=1) == 1
    with pytest.raises(JobCancelledError):
        await calls[0]
    assert not calls[1].done()
    assert await trainer.cancel_run(run_id, up_to_step=2) == 1
    with pytest.raises(JobCancelledError):
        await calls[1]


async def test_an_idle_client_runs_no_tasks(
    trainer: AsyncRewardClient,
) -> None:
    before = asyncio.all_tasks()
    await asyncio.gather(*(trainer.score(TASK, code=BROKEN) for _ in range(5)))
    await until(lambda: asyncio.all_tasks() <= before)


async def test_min_complete_ends_a_batch_and_cancels_the_rest(
    trainer: AsyncRewardClient, job_client: JobClient, run_id: str
) -> None:
    items = [Submission(TASK, code=code, run_id=run_id) for code in (nap("64.5"), BROKEN)]
    results = [one async for one in trainer.score_many(items, min_complete=1, rest="cancel")]
    assert [one.index for one in results] == [1]
    assert results[0].answer is not None
    await until(lambda: not job_client.runs("64.5") and depth(job_client) == 0)
    assert len(job_client.solutions(run_id)) == 1


async def test_the_rest_of_a_batch_may_go_on_without_us(
    trainer: AsyncRewardClient, job_client: JobClient, run_id: str
) -> None:
    items = [Submission(TASK, code=code, run_id=run_id) for code in (nap(1.5), BROKEN)]
    jobs = await asyncio.gather(
        *(trainer.submit(TASK, code=one.code, run_id=run_id, idempotency_key=f"{run_id}-{n}")
          for n, one in enumerate(items))
    )  # fmt: skip
    keyed = [
        dataclasses.replace(one, idempotency_key=f"{run_id}-{n}") for n, one in enumerate(items)
    ]
    results = [one async for one in trainer.score_many(keyed, min_complete=1)]
    assert [one.index for one in results] == [1]
    assert job_client.answer(jobs[0].job_id)["stdout_tail"] == "through\n"


async def test_jobs_are_yielded_in_order_of_completion(trainer: AsyncRewardClient) -> None:
    jobs = [await trainer.submit(TASK, code=code) for code in (nap(2), nap(0.2))]
    known: list[Job | str] = [jobs[0].job_id, jobs[1]]
    results = [one async for one in trainer.as_completed(known)]
    assert [one.index for one in results] == [1, 0]
    assert [one.answer and one.answer.job_id for one in results] == [
        jobs[1].job_id,
        jobs[0].job_id,
    ]


async def test_a_wrong_item_ends_its_batch_and_no_other(
    trainer: AsyncRewardClient,
) -> None:
    items = [Submission("no-such-task", code=BROKEN), Submission(TASK, code=nap(0.5))]
    with pytest.raises(RequestRefusedError, match="no such task"):
        _ = [one async for one in trainer.score_many(items)]
    other = asyncio.create_task(trainer.score(TASK, code=nap(0.5)))
    for unknown in ("no id at all", str(uuid.uuid4())):
        with pytest.raises(RequestRefusedError):
            await trainer.wait(unknown)
    assert (await other).status == "failed"
    with pytest.raises(ValueError, match="min_complete"):
        _ = [one async for one in trainer.score_many(items, min_complete=3)]


async def test_a_job_is_found_again_after_the_deadline(trainer: AsyncRewardClient) -> None:
    with pytest.raises(DeadlineExceededError) as caught:
        await trainer.score(TASK, code=nap(2), deadline_seconds=0.7)
    assert caught.value.job_id is not None
    assert caught.value.idempotency_key is not None
    answer = await trainer.wait(caught.value.job_id)
    assert answer.stdout_tail == "through\n"
    again = trainer.score(TASK, code=nap(2), idempotency_key=caught.value.idempotency_key)
    assert (await again).solution_id == answer.solution_id


async def test_one_deadline_is_for_all_of_a_batch(trainer: AsyncRewardClient) -> None:
    items = [Submission(TASK, code=code) for code in (nap("66.5"), BROKEN)]
    batch = trainer.score_many(items, deadline_seconds=3, rest="cancel")
    results = {one.index: one async for one in batch}
    assert results[1].answer is not None
    error = results[0].error
    assert isinstance(error, DeadlineExceededError)
    assert error.job_id is not None
    with pytest.raises(JobCancelledError):
        await trainer.wait(error.job_id)


@pytest.mark.parametrize("cancels", [True, False])
async def test_an_abandoned_wait_can_cancel_its_job(
    url: str,
    job_client: JobClient,
    cancels: bool,  # noqa: FBT001
) -> None:
    mark = "67.5" if cancels else "68.5"
    key = str(uuid.uuid4())
    async with AsyncRewardClient(url, KEYS["team"], cancel_on_abandon=cancels) as client:
        call = asyncio.create_task(client.score(TASK, code=nap(mark), idempotency_key=key))
        await asyncio.to_thread(job_client.wait_for_program, mark)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        if cancels:
            await until(lambda: not job_client.runs(mark))
            return
        assert job_client.runs(mark)
        await client.cancel(await client.submit(TASK, code=nap(mark), idempotency_key=key))


async def test_a_full_queue_is_waited_for_until_the_deadline(
    trainer: AsyncRewardClient, url: str, job_client: JobClient, run_id: str
) -> None:
    filling = await asyncio.to_thread(job_client.fill, 30)
    async with AsyncRewardClient(url, KEYS["guest"]) as guest:
        with pytest.raises(OverloadedError) as caught:
            await submit_until_full(guest)
        assert (caught.value.status, caught.value.retryable) == (429, True)
        assert caught.value.retry_after_seconds >= 1
        calls = [guest.score(TASK, code=BROKEN, run_id=run_id) for _ in range(8)]
        late = [asyncio.create_task(call) for call in calls]
        for job_id in filling:
            await trainer.cancel(job_id)
        answers = await asyncio.gather(*late)
    assert len({answer.solution_id for answer in answers}) == 8
    assert len(job_client.solutions(run_id)) == 8


async def submit_until_full(guest: AsyncRewardClient) -> None:
    for _ in range(20):  # a share of three, give or take what is just being counted
        await guest.submit(TASK, code=BROKEN, deadline_seconds=0.9)


async def test_proxies_of_the_environment_are_not_used(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with AsyncRewardClient(url, KEYS["team"]) as client:
        assert await client.ready()


async def test_a_client_belongs_to_one_event_loop(trainer: AsyncRewardClient) -> None:
    assert await trainer.ready()
    with pytest.raises(RuntimeError, match="event loop"):
        await asyncio.to_thread(asyncio.run, trainer.ready())


async def test_closing_a_client_ends_pending_calls(url: str, job_client: JobClient) -> None:
    client = AsyncRewardClient(url, KEYS["team"])
    job = await client.submit(TASK, code=nap("69.5"))
    waiting = asyncio.create_task(client.wait(job))
    await asyncio.to_thread(job_client.wait_for_program, "69.5")
    await client.close()
    with pytest.raises(RuntimeError, match="closed"):
        await waiting
    with pytest.raises(RuntimeError, match="closed"):
        await client.score(TASK, code=BROKEN)
    assert job_client.cancel(job.job_id) == "cancelled"
