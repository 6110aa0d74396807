"""Jobs over HTTP: submit, wait, cancel; idempotency keys, quotas, fairness and metrics."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.conftest import start_server, stop_server, wait_until
from tests.support.job_client import SETTINGS, SLOTS, JobClient, item, nap

if TYPE_CHECKING:
    from pathlib import Path


def test_a_job_is_submitted_waited_for_and_found_again(team: JobClient) -> None:
    response = team.post("import time\ntime.sleep(1)\n")
    assert response.status_code == 202
    assert set(response.json()) == {"job_id", "status"}
    job_id = response.json()["job_id"]
    early = team.get(job_id, 0.1)
    assert early.status_code == 202
    assert early.json() == {"job_id": job_id, "status": "running"}
    answer = team.answer(job_id)
    assert answer["job_id"] == job_id
    assert answer["duration_seconds"] >= 1
    assert team.answer(job_id) == answer


def test_a_job_has_no_wait_seconds(team: JobClient) -> None:
    assert team.post("print(1)", wait_seconds=1).status_code == 422


def test_a_cancelled_job_in_the_queue_never_runs(team: JobClient, run_id: str) -> None:
    running = team.fill(2)
    job_id = team.submit("print(1)", run_id=run_id)
    assert team.get(job_id, 0).json()["status"] == "queued"
    assert team.cancel(job_id) == "cancelled"
    assert team.cancel(job_id) == "cancelled"
    response = team.get(job_id)
    assert response.status_code == 503
    assert (response.json()["kind"], response.json()["retryable"]) == ("cancelled", False)
    for other in running:
        team.answer(other)
    assert team.solutions(run_id) == []


def test_cancelling_a_running_job_stops_its_program(team: JobClient, run_id: str) -> None:
    job_id = team.submit(nap("61.5"), run_id=run_id)
    team.wait_for_program("61.5")
    assert team.cancel(job_id) == "cancelled"
    wait_until(lambda: not team.runs("61.5"), 30)
    assert team.get(job_id).json()["kind"] == "cancelled"
    assert team.solutions(run_id) == []


def test_cancelling_a_job_ends_the_wait_for_it_at_once(team: JobClient) -> None:
    job_id = team.submit(nap("62.5"))
    team.wait_for_program("62.5")
    begun = time.monotonic()
    team.cancel(job_id)
    assert team.get(job_id).status_code == 503
    assert time.monotonic() - begun < 3


def test_cancelling_a_job_that_has_ended_changes_nothing(team: JobClient) -> None:
    job_id = team.submit("print(1)")
    answer = team.answer(job_id)
    assert team.cancel(job_id) == answer["status"] == "failed"
    assert team.answer(job_id) == answer
    assert team.http.delete(f"/v1/jobs/{uuid.uuid4()}").status_code == 404


def test_all_steps_of_a_run_up_to_one_are_cancelled_together(team: JobClient, run_id: str) -> None:
    running = team.submit(nap("64.5"), run_id=run_id, step=1)
    later = team.submit(nap("65.5"), run_id=run_id, step=3)
    team.wait_for_program("64.5")
    team.wait_for_program("65.5")
    queued = team.submit("print(1)", run_id=run_id, step=2)
    others = [team.submit("print(1)", run_id=run_id), team.submit("print(1)", run_id="r", step=1)]
    assert cancel_steps(team, run_id, 2) == {"cancelled": 2}
    wait_until(lambda: not team.runs("64.5"))
    assert [team.get(job_id).json()["kind"] for job_id in (running, queued)] == ["cancelled"] * 2
    for job_id in others:
        team.answer(job_id)
    assert team.get(later, 0).json()["status"] == "running"
    assert cancel_steps(team, run_id, 2) == {"cancelled": 0}
    assert cancel_steps(team, run_id, 3) == {"cancelled": 1}


def test_a_client_cannot_cancel_the_steps_of_another(
    team: JobClient, guest: JobClient, run_id: str
) -> None:
    job_id = team.submit(nap("66.5"), run_id=run_id, step=1)
    assert cancel_steps(guest, run_id, 1) == {"cancelled": 0}
    assert team.get(job_id, 0).status_code == 202
    assert team.cancel(job_id) == "cancelled"


@pytest.mark.parametrize(
    "body",
    [
        {"run_id": "r"},
        {"up_to_step": 1},
        {"run_id": "", "up_to_step": 1},
        {"run_id": "r", "up_to_step": -1},
        {"run_id": "r", "up_to_step": 1 << 63},
        {"run_id": "r", "up_to_step": "1"},
        {"run_id": "r", "up_to_step": None},
        {"run_id": "r", "up_to_step": 1, "task_id": "t"},
    ],
)
def test_an_invalid_cancel_request_is_refused(team: JobClient, body: dict[str, object]) -> None:
    assert team.http.post("/v1/jobs/cancel", json=body).status_code == 422


def cancel_steps(team: JobClient, run_id: str, up_to_step: int) -> dict[str, int]:
    body = {"run_id": run_id, "up_to_step": up_to_step}
    response = team.http.post("/v1/jobs/cancel", json=body)
    assert response.status_code == 200, response.text
    cancelled: dict[str, int] = response.json()
    return cancelled


def test_an_idempotency_key_joins_a_running_or_ended_job(team: JobClient, run_id: str) -> None:
    code, key = "import time\ntime.sleep(1)\n", str(uuid.uuid4())
    first = team.submit(code, run_id=run_id, idempotency_key=key)
    assert team.submit(code, run_id=run_id, idempotency_key=key) == first
    answer = team.answer(first)
    ended = team.post(code, run_id=run_id, idempotency_key=key).json()
    assert ended == {"job_id": first, "status": "failed"}
    blocking = item(code, run_id=run_id, idempotency_key=key)
    assert team.http.post("/score", json=blocking).json() == answer
    assert len(team.solutions(run_id)) == 1


def test_an_idempotency_key_with_another_body_is_a_conflict(team: JobClient) -> None:
    key = str(uuid.uuid4())
    team.submit("print(1)", idempotency_key=key)
    response = team.post("print(2)", idempotency_key=key)
    assert (response.status_code, response.json()["kind"]) == (409, "conflict")


def test_a_cancelled_job_runs_when_it_is_submitted_again(team: JobClient) -> None:
    key = str(uuid.uuid4())
    job_id = team.submit(nap("1.23"), idempotency_key=key)
    team.cancel(job_id)
    assert team.submit(nap("1.23"), idempotency_key=key) == job_id
    answer = team.answer(job_id)
    assert answer["attempt"] == 2
    assert answer["stdout_tail"] == "through\n"


def test_waiting_for_many_jobs_returns_the_first_that_ends(team: JobClient) -> None:
    slow, fast = team.submit(nap(3)), team.submit(nap(0.3))
    unknown = str(uuid.uuid4())
    body = {"job_ids": [slow, fast], "wait_seconds": 60}
    (ending,) = team.http.post("/v1/jobs/wait", json=body).json()["ended"]
    assert ending["job_id"] == fast
    assert ending["answer"] == team.answer(fast)
    assert ending["error"] is None
    over = team.http.post("/v1/jobs/wait", json={"job_ids": [slow], "wait_seconds": 0.1})
    assert over.json() == {"ended": []}
    team.cancel(slow)
    body = {"job_ids": [slow, unknown, slow], "wait_seconds": 60}
    endings = team.http.post("/v1/jobs/wait", json=body).json()["ended"]
    kinds = {ending["job_id"]: ending["error"]["kind"] for ending in endings}
    assert kinds == {slow: "cancelled", unknown: "not_found"}


@pytest.mark.parametrize("ids", [[], ["x"], ["x" * 300], "x"])
def test_waiting_for_an_invalid_job_id_is_refused(team: JobClient, ids: object) -> None:
    assert team.http.post("/v1/jobs/wait", json={"job_ids": ids}).status_code in (404, 422)


def test_a_run_with_many_jobs_does_not_starve_one_with_few(team: JobClient, run_id: str) -> None:
    large, small = f"{run_id}-large", f"{run_id}-small"
    filling = team.fill(30)
    jobs = [team.submit("print(1)", run_id=large) for _ in range(12)]
    jobs += [team.submit("print(1)", run_id=small) for _ in range(2)]
    team.cancel(filling[0])  # the other slot stays busy: the turns are those of one slot
    for job_id in jobs:
        team.answer(job_id)
    team.cancel(filling[1])
    order = team.ends_in_order([large, small])
    assert len(order) == len(jobs)
    assert order[:6].count(small) == 2


def test_evaluation_jobs_run_before_training_jobs(team: JobClient, run_id: str) -> None:
    training, evaluation = f"{run_id}-training", f"{run_id}-evaluation"
    filling = team.fill(30)
    jobs = [team.submit(nap(0.3), run_id=training) for _ in range(6)]
    jobs.append(team.submit("print(1)", run_id=evaluation, priority="evaluation"))
    for job_id in filling:
        team.cancel(job_id)
    for job_id in jobs:
        team.answer(job_id)
    order = team.ends_in_order([training, evaluation])
    assert order.index(evaluation) < SLOTS


def test_a_client_has_its_share_of_the_queue_and_no_more(team: JobClient, guest: JobClient) -> None:
    running, key = team.fill(60), str(uuid.uuid4())  # cancelled below, so never waited for
    waiting = [guest.submit("print(1)") for _ in range(2)]
    waiting.append(guest.submit("print(2)", idempotency_key=key))
    refused = guest.post("print(3)")
    assert (refused.status_code, refused.json()["kind"]) == (429, "overloaded")
    assert 1 <= int(refused.headers["retry-after"]) <= 3600  # by how fast jobs ended so far
    batch = guest.http.post("/v1/batches", json={"items": [item("print(4)")]})
    assert batch.status_code == 429
    assert guest.submit("print(2)", idempotency_key=key) == waiting[-1]
    waiting.append(team.submit("print(5)"))
    for job_id in running:
        team.cancel(job_id)
    for job_id in waiting:
        team.answer(job_id)
    wait_until(lambda: guest.post("print(6)").status_code == 202, 30)


def test_metrics_show_the_queue_the_waits_and_the_slots(team: JobClient) -> None:
    running = team.fill(30)
    waiting = [team.submit("print(1)") for _ in range(3)]
    wait_until(lambda: depth(team) == (3, SLOTS, SLOTS), 60)  # counted once a second
    shown = numbers(team)
    assert shown["reward_slots"] == SLOTS
    assert shown["reward_jobs_oldest_seconds"] > 0
    before = shown["reward_job_queue_seconds_count"]
    for job_id in running:
        team.cancel(job_id)
    for job_id in waiting:
        team.answer(job_id)
    ended = before + len(waiting)
    wait_until(lambda: numbers(team)["reward_job_queue_seconds_count"] == ended, 60)
    after = numbers(team)
    assert after["reward_job_queue_seconds_sum"] > shown["reward_job_queue_seconds_sum"]


def depth(team: JobClient) -> tuple[float, ...]:
    shown = numbers(team)
    names = ("reward_jobs_queued", "reward_jobs_running", "reward_slots_busy")
    return tuple(shown[name] for name in names)


def numbers(team: JobClient) -> dict[str, float]:
    lines = team.http.get("/metrics").text.splitlines()
    plain = (line.split(" ") for line in lines if not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, value in plain}


def test_with_reuse_a_program_runs_once_per_run(own_dir: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, "REWARD_SERVER_CLIENTS": "{}", "REWARD_SERVER_JOBS__REUSE": "true"}
    process, url = start_server(own_dir, tmp_path / "log", settings)
    code = "import time\ntime.sleep(1)\nprint('once')\n"
    try:
        with JobClient(url, "", process.pid) as team:
            first = team.answer(team.submit(code, run_id="one"))
            begun = time.monotonic()
            second = team.answer(team.submit(code, run_id="one", sample_id="2"))
            assert time.monotonic() - begun < 1
            other = team.answer(team.submit(code, run_id="two"))
    finally:
        stop_server(process)
    assert [one["sandbox"]["reused"] for one in (first, second, other)] == [False, True, False]
    assert second["job_id"] != first["job_id"]
    assert second["solution_id"] != first["solution_id"]
    for name in ("reward", "milestones", "duration_seconds", "stdout_tail", "error"):
        assert second[name] == first[name]


def test_without_reuse_every_program_runs(team: JobClient, run_id: str) -> None:
    code = "import time\nprint(time.time())\n"
    answers = [team.answer(team.submit(code, run_id=run_id)) for _ in range(2)]
    assert answers[0]["stdout_tail"] != answers[1]["stdout_tail"]
    assert not any(answer["sandbox"]["reused"] for answer in answers)
