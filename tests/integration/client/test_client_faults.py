"""What a client makes of replies that a good server does not give."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.job_client import KEYS, TASK, JobClient
from tests.support.lm_endpoints import respond
from tests.support.relays import Heard, Liar, TcpRelay, reply
from trainer_client import (
    AsyncRewardClient,
    DeadlineExceededError,
    InfrastructureError,
    JobCancelledError,
    OverloadedError,
    RequestRefusedError,
    SampleLostError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SUBMIT, WAIT = "POST /v1/jobs", "POST /v1/jobs/wait"
JOB = str(uuid.uuid4())
ACCEPTED = reply({"job_id": JOB, "status": "queued"}, 202)
PAGE = respond(b"<html>Bad Gateway</html>", 502, {"Content-Type": "text/html"})
ANSWER: dict[str, Any] = {
    "job_id": JOB,
    "solution_id": str(uuid.uuid4()),
    "task_id": TASK,
    "run_id": "default",
    "status": "scored",
    "reward": 0.5,
    "score": 0.5,
    "higher_is_better": True,
    "valid": True,
    "error": None,
    "milestones": ["loaded data"],
    "duration_seconds": 1.5,
    "cpu_seconds": 1.0,
    "timings": dict.fromkeys(("queue", "instrument", "boot", "execute", "grade", "total"), 0.1),
    "peak_memory_bytes": 1,
    "stdout_tail": "",
    "stderr_tail": "",
    "instrumentation": {"kind": "static", "model": None, "verified": True, "reason": None},
    "sandbox": {"kind": "zygote", "image": "-", "contended": False, "reused": False},
    "data_digest": "d",
    "scheme": "paper",
    "attempt": 1,
    "medal": None,
}


def ended(answer: object = None, error: object = None) -> bytes:
    return reply({"ended": [{"job_id": JOB, "answer": answer, "error": error}]})


def lost(kind: str, *, retryable: bool = True, blame: str = "infra") -> bytes:
    error = {"kind": kind, "blame": blame, "message": "it is gone", "retryable": retryable}
    return ended(error=error)


def in_turn(**replies: list[bytes | None]) -> Callable[[Heard], bytes | None]:
    """Give each kind of request its replies in turn, the last for ever."""

    def choose(heard: Heard) -> bytes | None:
        given = replies[{SUBMIT: "submit", WAIT: "wait"}.get(heard.line, "other")]
        return given.pop(0) if len(given) > 1 else given[0]

    return choose


async def test_a_lost_response_to_a_submission_creates_no_second_job(
    url: str, job_client: JobClient, run_id: str
) -> None:
    with TcpRelay(url, b"POST /v1/jobs ", drops=2) as relay:
        async with AsyncRewardClient(relay.url, KEYS["team"]) as client:
            answer = await client.score(TASK, code="print(1)", run_id=run_id)
        assert relay.drops == 0
    assert [line["solution_id"] for line in job_client.solutions(run_id)] == [answer.solution_id]


async def test_a_poll_that_is_cut_off_is_made_again(url: str) -> None:
    with TcpRelay(url, b"POST /v1/jobs/wait ", drops=3) as relay:
        async with AsyncRewardClient(relay.url, KEYS["team"]) as client:
            await client.score(TASK, code="print(1)")
        assert relay.drops == 0


async def test_error_pages_of_a_proxy_are_retried() -> None:
    replies = in_turn(submit=[PAGE, respond(b"<p>Hello"), ACCEPTED], wait=[PAGE, ended(ANSWER)])
    with Liar(replies) as liar:
        async with AsyncRewardClient(liar.url) as client:
            assert (await client.score(TASK, code="1")).reward == 0.5
        keys = {heard.body["idempotency_key"] for heard in liar.of(SUBMIT)}
        assert (len(liar.of(SUBMIT)), len(keys)) == (3, 1)


@pytest.mark.parametrize(
    "page", [PAGE, respond(b"<p>Hello"), respond(b"[]"), reply({"kind": "x"}, 500)]
)
async def test_pages_that_do_not_end_are_an_infrastructure_error(page: bytes) -> None:
    with Liar(in_turn(submit=[page])) as liar:
        async with AsyncRewardClient(liar.url, outage_seconds=0.2) as client:
            with pytest.raises(InfrastructureError) as caught:
                await client.score(TASK, code="1")
    assert caught.value.status is not None
    assert caught.value.idempotency_key is not None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("reward", float("nan")),
        ("reward", float("-inf")),
        ("reward", None),
        ("reward", True),
        ("reward", "0.5"),
        ("reward", 10**400),
        ("duration_seconds", float("inf")),
        ("score", float("nan")),
        ("timings", None),
    ],
)
async def test_a_value_that_is_no_number_is_refused(key: str, value: object) -> None:
    replies = in_turn(submit=[ACCEPTED], wait=[ended(ANSWER | {key: value})])
    with Liar(replies) as liar:
        async with AsyncRewardClient(liar.url) as client:
            with pytest.raises(InfrastructureError) as caught:
                await client.score(TASK, code="1")
    assert (caught.value.kind, caught.value.job_id) == ("bad_answer", JOB)


async def test_an_answer_without_a_reward_is_refused() -> None:
    answer = {name: value for name, value in ANSWER.items() if name != "reward"}
    with Liar(in_turn(submit=[ACCEPTED], wait=[ended(answer)])) as liar:
        async with AsyncRewardClient(liar.url) as client:
            with pytest.raises(InfrastructureError, match="reward"):
                await client.score(TASK, code="1")


async def test_keys_of_a_newer_server_are_kept() -> None:
    answer = ANSWER | {"colour": "blue", "sandbox": ANSWER["sandbox"] | {"floor": 3}}
    with Liar(in_turn(submit=[ACCEPTED], wait=[ended(answer)])) as liar:
        async with AsyncRewardClient(liar.url) as client:
            assert (await client.score(TASK, code="1")).raw["colour"] == "blue"


async def test_a_full_server_is_asked_again_when_it_said() -> None:
    full = reply({"kind": "overloaded", "retryable": True}, 429, Retry_After="1")
    with Liar(in_turn(submit=[full, ACCEPTED], wait=[ended(ANSWER)])) as liar:
        async with AsyncRewardClient(liar.url) as client:
            await asyncio.gather(*(client.score(TASK, code="1") for _ in range(30)))
        first, second, *_ = (heard.at for heard in liar.of(SUBMIT))
        refused = [heard for heard in liar.of(SUBMIT) if heard.at < first + 1]
        assert len(liar.of(SUBMIT)) == 31
        assert second > first
        assert len(refused) <= 8  # those under way; the others waited, too


async def test_a_deadline_before_retry_after_fails_at_once() -> None:
    full = reply({"kind": "overloaded", "retryable": True}, 429, Retry_After="3000")
    with Liar(in_turn(submit=[full])) as liar:
        async with AsyncRewardClient(liar.url) as client:
            with pytest.raises(OverloadedError) as caught:
                await client.score(TASK, code="1", deadline_seconds=2000)
    assert caught.value.retry_after_seconds == 3000


async def test_a_lost_job_is_resubmitted_once_with_its_key() -> None:
    for kind, blame in (("worker_lost", "infra"), ("not_found", "request")):
        gone = lost(kind, retryable=blame == "infra", blame=blame)
        with Liar(in_turn(submit=[ACCEPTED], wait=[gone, ended(ANSWER)])) as liar:
            async with AsyncRewardClient(liar.url) as client:
                assert (await client.score(TASK, code="1")).reward == 0.5
            first, second = liar.of(SUBMIT)
            assert first.body == second.body
        with Liar(in_turn(submit=[ACCEPTED], wait=[gone])) as liar:
            async with AsyncRewardClient(liar.url) as client:
                with pytest.raises(InfrastructureError) as caught:
                    await client.score(TASK, code="1")
            assert len(liar.of(SUBMIT)) == 2
        assert (caught.value.kind, caught.value.job_id) == (kind, JOB)


async def test_an_error_that_would_repeat_is_not_retried() -> None:
    ends = [
        (lost("grader_error", retryable=False), InfrastructureError),
        (lost("cancelled", retryable=False), JobCancelledError),
    ]
    for end, error in ends:
        with Liar(in_turn(submit=[ACCEPTED], wait=[end])) as liar:
            async with AsyncRewardClient(liar.url) as client:
                with pytest.raises(error):
                    await client.score(TASK, code="1")
            assert len(liar.of(SUBMIT)) == 1


async def test_redirects_are_not_followed() -> None:
    with Liar(in_turn(submit=[respond(b"", 307, {"Location": "http://127.0.0.1:9/"})])) as liar:
        async with AsyncRewardClient(liar.url, "a key to keep") as client:
            with pytest.raises(RequestRefusedError, match=r"127\.0\.0\.1:9"):
                await client.score(TASK, code="1")
        assert "Bearer a key to keep" in liar.heard[0].head


@pytest.mark.parametrize("silent", ["submit", "wait"])
async def test_a_silent_server_costs_no_more_than_the_deadline(silent: str) -> None:
    replies: dict[str, list[bytes | None]] = {"submit": [ACCEPTED], "wait": [ended(ANSWER)]}
    with Liar(in_turn(**replies | {silent: [None]})) as liar:
        async with AsyncRewardClient(liar.url) as client:
            with pytest.raises(DeadlineExceededError) as caught:
                await client.score(TASK, code="1", deadline_seconds=0.5)
    assert caught.value.idempotency_key is not None
    assert caught.value.job_id == (JOB if silent == "wait" else None)


async def test_an_outage_ends_all_waiting_calls_at_once() -> None:
    async with AsyncRewardClient("http://127.0.0.1:9", outage_seconds=1) as client:
        assert not await client.ready()
        calls = [client.score(TASK, code="1") for _ in range(200)]
        async with asyncio.timeout(60):  # each with a second of its own would take far longer
            errors = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(error, InfrastructureError) for error in errors)
        assert {error.kind for error in errors if isinstance(error, SampleLostError)} == {
            "unreachable"
        }


async def test_thousands_of_jobs_are_polled_in_parts() -> None:
    ids = [str(uuid.uuid4()) for _ in range(6000)]
    reported: set[str] = set()

    def report(heard: Heard) -> bytes:
        found = [job_id for job_id in heard.body["job_ids"] if job_id not in reported][:1500]
        reported.update(found)
        endings = [
            {"job_id": one, "answer": ANSWER | {"job_id": one}, "error": None} for one in found
        ]
        return reply({"ended": endings})

    with Liar(report) as liar:
        async with AsyncRewardClient(liar.url) as client:
            results = [one async for one in client.as_completed(ids)]
        assert {one.answer.job_id for one in results if one.answer} == set(ids)
        assert max(len(heard.body["job_ids"]) for heard in liar.of(WAIT)) == 5000
        assert liar.most_open <= 3


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://server", "http://", "http://[::"])
def test_an_invalid_url_fails_at_once(address: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        AsyncRewardClient(address)
