"""Submit, wait, cancel; keys, quotas, turns and numbers."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.conftest import start_server, stop_server, wait_until
from tests.support.job_client import SETTINGS, SLOTS, JobClient, item, nap

if TYPE_CHECKING:
    from pathlib import Path


def test_a_job_is_submitted_waited_for_and_found_again(desk: JobClient) -> None:
    response = desk.post("import time\ntime.sleep(1)\n")
    assert response.status_code == 202
    assert set(response.json()) == {"job_id", "status"}
    job_id = response.json()["job_id"]
    early = desk.get(job_id, 0.1)
    assert early.status_code == 202
    assert early.json() == {"job_id": job_id, "status": "running"}
    answer = desk.answer(job_id)
    assert answer["job_id"] == job_id
    assert answer["duration_seconds"] >= 1
    assert desk.answer(job_id) == answer


def test_how_long_to_wait_is_not_part_of_a_job(desk: JobClient) -> None:
    assert desk.post("print(1)", wait_seconds=1).status_code == 422


def test_a_job_that_waits_is_cancelled_and_never_runs(desk: JobClient, run_id: str) -> None:
    running = desk.fill(2)
    job_id = desk.submit("print(1)", run_id=run_id)
    assert desk.get(job_id, 0).json()["status"] == "queued"
    assert desk.cancel(job_id) == "cancelled"
    assert desk.cancel(job_id) == "cancelled"
    response = desk.get(job_id)
    assert response.status_code == 503
    assert (response.json()["kind"], response.json()["retryable"]) == ("cancelled", False)
    for other in running:
        desk.answer(other)
    assert desk.solutions(run_id) == []


def test_a_job_that_runs_is_cancelled_box_and_all(desk: JobClient, run_id: str) -> None:
    job_id = desk.submit(nap("61.5"), run_id=run_id)
    desk.wait_for_program("61.5")
    assert desk.cancel(job_id) == "cancelled"
    wait_until(lambda: not desk.runs("61.5"), 30)
    assert desk.get(job_id).json()["kind"] == "cancelled"
    assert desk.solutions(run_id) == []


def test_whoever_waits_for_a_job_hears_at_once_that_it_was_cancelled(desk: JobClient) -> None:
    job_id = desk.submit(nap("62.5"))
    desk.wait_for_program("62.5")
    begun = time.monotonic()
    desk.cancel(job_id)
    assert desk.get(job_id).status_code == 503
    assert time.monotonic() - begun < 3


def test_what_has_ended_stays_as_it_is(desk: JobClient) -> None:
    job_id = desk.submit("print(1)")
    answer = desk.answer(job_id)
    assert desk.cancel(job_id) == answer["status"] == "failed"
    assert desk.answer(job_id) == answer
    assert desk.http.delete(f"/v1/jobs/{uuid.uuid4()}").status_code == 404


def test_the_steps_of_a_run_up_to_one_are_cancelled_together(desk: JobClient, run_id: str) -> None:
    running = desk.submit(nap("64.5"), run_id=run_id, step=1)
    later = desk.submit(nap("65.5"), run_id=run_id, step=3)
    desk.wait_for_program("64.5")
    desk.wait_for_program("65.5")
    queued = desk.submit("print(1)", run_id=run_id, step=2)
    others = [desk.submit("print(1)", run_id=run_id), desk.submit("print(1)", run_id="r", step=1)]
    assert cancel_steps(desk, run_id, 2) == {"cancelled": 2}
    wait_until(lambda: not desk.runs("64.5"))
    assert [desk.get(job_id).json()["kind"] for job_id in (running, queued)] == ["cancelled"] * 2
    for job_id in others:
        desk.answer(job_id)
    assert desk.get(later, 0).json()["status"] == "running"
    assert cancel_steps(desk, run_id, 2) == {"cancelled": 0}
    assert cancel_steps(desk, run_id, 3) == {"cancelled": 1}


def test_a_key_cancels_no_steps_of_another(desk: JobClient, guest: JobClient, run_id: str) -> None:
    job_id = desk.submit(nap("66.5"), run_id=run_id, step=1)
    assert cancel_steps(guest, run_id, 1) == {"cancelled": 0}
    assert desk.get(job_id, 0).status_code == 202
    assert desk.cancel(job_id) == "cancelled"


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
def test_steps_that_make_no_sense_are_not_cancelled(
    desk: JobClient, body: dict[str, object]
) -> None:
    assert desk.http.post("/v1/jobs/cancel", json=body).status_code == 422


def cancel_steps(desk: JobClient, run_id: str, up_to_step: int) -> dict[str, int]:
    body = {"run_id": run_id, "up_to_step": up_to_step}
    response = desk.http.post("/v1/jobs/cancel", json=body)
    assert response.status_code == 200, response.text
    told: dict[str, int] = response.json()
    return told


def test_a_key_joins_its_job_running_or_ended(desk: JobClient, run_id: str) -> None:
    code, key = "import time\ntime.sleep(1)\n", str(uuid.uuid4())
    first = desk.submit(code, run_id=run_id, idempotency_key=key)
    assert desk.submit(code, run_id=run_id, idempotency_key=key) == first
    answer = desk.answer(first)
    ended = desk.post(code, run_id=run_id, idempotency_key=key).json()
    assert ended == {"job_id": first, "status": "failed"}
    blocking = item(code, run_id=run_id, idempotency_key=key)
    assert desk.http.post("/score", json=blocking).json() == answer
    assert len(desk.solutions(run_id)) == 1


def test_a_key_with_another_body_is_a_conflict(desk: JobClient) -> None:
    key = str(uuid.uuid4())
    desk.submit("print(1)", idempotency_key=key)
    response = desk.post("print(2)", idempotency_key=key)
    assert (response.status_code, response.json()["kind"]) == (409, "conflict")


def test_a_cancelled_job_is_run_after_all_when_it_is_asked_for_again(desk: JobClient) -> None:
    key = str(uuid.uuid4())
    job_id = desk.submit(nap("1.23"), idempotency_key=key)
    desk.cancel(job_id)
    assert desk.submit(nap("1.23"), idempotency_key=key) == job_id
    answer = desk.answer(job_id)
    assert answer["attempt"] == 2
    assert answer["stdout_tail"] == "through\n"


def test_the_first_of_many_to_end_is_told(desk: JobClient) -> None:
    slow, fast = desk.submit(nap(3)), desk.submit(nap(0.3))
    unknown = str(uuid.uuid4())
    body = {"job_ids": [slow, fast], "wait_seconds": 60}
    (ending,) = desk.http.post("/v1/jobs/wait", json=body).json()["ended"]
    assert ending["job_id"] == fast
    assert ending["answer"] == desk.answer(fast)
    assert ending["error"] is None
    over = desk.http.post("/v1/jobs/wait", json={"job_ids": [slow], "wait_seconds": 0.1})
    assert over.json() == {"ended": []}
    desk.cancel(slow)
    body = {"job_ids": [slow, unknown, slow], "wait_seconds": 60}
    endings = desk.http.post("/v1/jobs/wait", json=body).json()["ended"]
    kinds = {ending["job_id"]: ending["error"]["kind"] for ending in endings}
    assert kinds == {slow: "cancelled", unknown: "not_found"}


@pytest.mark.parametrize("ids", [[], ["x"], ["x" * 300], "x"])
def test_waiting_for_what_is_no_job_is_refused(desk: JobClient, ids: object) -> None:
    assert desk.http.post("/v1/jobs/wait", json={"job_ids": ids}).status_code in (404, 422)


def test_a_run_with_many_jobs_does_not_starve_one_with_few(desk: JobClient, run_id: str) -> None:
    large, small = f"{run_id}-large", f"{run_id}-small"
    filling = desk.fill(30)
    jobs = [desk.submit("print(1)", run_id=large) for _ in range(12)]
    jobs += [desk.submit("print(1)", run_id=small) for _ in range(2)]
    desk.cancel(filling[0])  # the other slot stays taken: turns do not hang on several
    for job_id in jobs:
        desk.answer(job_id)
    desk.cancel(filling[1])
    order = desk.ends_in_order([large, small])
    assert len(order) == len(jobs)
    assert order[:6].count(small) == 2


def test_evaluation_goes_before_training(desk: JobClient, run_id: str) -> None:
    training, evaluation = f"{run_id}-training", f"{run_id}-evaluation"
    filling = desk.fill(30)
    jobs = [desk.submit(nap(0.3), run_id=training) for _ in range(6)]
    jobs.append(desk.submit("print(1)", run_id=evaluation, priority="evaluation"))
    for job_id in filling:
        desk.cancel(job_id)
    for job_id in jobs:
        desk.answer(job_id)
    order = desk.ends_in_order([training, evaluation])
    assert order.index(evaluation) < SLOTS


def test_a_client_has_its_share_of_the_queue_and_no_more(desk: JobClient, guest: JobClient) -> None:
    running, key = desk.fill(5), str(uuid.uuid4())
    waiting = [guest.submit("print(1)") for _ in range(2)]
    waiting.append(guest.submit("print(2)", idempotency_key=key))
    refused = guest.post("print(3)")
    assert (refused.status_code, refused.json()["kind"]) == (429, "overloaded")
    assert 1 <= int(refused.headers["retry-after"]) <= 3600  # by how fast jobs ended so far
    batch = guest.http.post("/v1/batches", json={"items": [item("print(4)")]})
    assert batch.status_code == 429
    assert guest.submit("print(2)", idempotency_key=key) == waiting[-1]
    waiting.append(desk.submit("print(5)"))
    for job_id in running:
        desk.cancel(job_id)
    for job_id in waiting:
        desk.answer(job_id)
    wait_until(lambda: guest.post("print(6)").status_code == 202, 30)


def test_the_numbers_tell_of_depth_waiting_and_slots(desk: JobClient) -> None:
    running = desk.fill(30)
    waiting = [desk.submit("print(1)") for _ in range(3)]
    wait_until(lambda: depth(desk) == (3, SLOTS, SLOTS), 60)  # counted once a second
    shown = numbers(desk)
    assert shown["reward_slots"] == SLOTS
    assert shown["reward_jobs_oldest_seconds"] > 0
    before = shown["reward_job_queue_seconds_count"]
    for job_id in running:
        desk.cancel(job_id)
    for job_id in waiting:
        desk.answer(job_id)
    ended = before + len(waiting)
    wait_until(lambda: numbers(desk)["reward_job_queue_seconds_count"] == ended, 60)
    after = numbers(desk)
    assert after["reward_job_queue_seconds_sum"] > shown["reward_job_queue_seconds_sum"]


def depth(desk: JobClient) -> tuple[float, ...]:
    shown = numbers(desk)
    names = ("reward_jobs_queued", "reward_jobs_running", "reward_slots_busy")
    return tuple(shown[name] for name in names)


def numbers(desk: JobClient) -> dict[str, float]:
    lines = desk.http.get("/metrics").text.splitlines()
    plain = (line.split(" ") for line in lines if not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, value in plain}


def test_with_reuse_a_program_of_a_run_is_run_once(own_dir: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, "REWARD_SERVER_CLIENTS": "{}", "REWARD_SERVER_JOBS__REUSE": "true"}
    process, url = start_server(own_dir, tmp_path / "log", settings)
    code = "import time\ntime.sleep(1)\nprint('once')\n"
    try:
        with JobClient(url, "", process.pid) as desk:
            first = desk.answer(desk.submit(code, run_id="one"))
            begun = time.monotonic()
            second = desk.answer(desk.submit(code, run_id="one", sample_id="2"))
            assert time.monotonic() - begun < 1
            other = desk.answer(desk.submit(code, run_id="two"))
    finally:
        stop_server(process)
    assert [one["sandbox"]["reused"] for one in (first, second, other)] == [False, True, False]
    assert second["job_id"] != first["job_id"]
    assert second["solution_id"] != first["solution_id"]
    for name in ("reward", "milestones", "duration_seconds", "stdout_tail", "error"):
        assert second[name] == first[name]


def test_without_reuse_every_program_is_run(desk: JobClient, run_id: str) -> None:
    code = "import time\nprint(time.time())\n"
    answers = [desk.answer(desk.submit(code, run_id=run_id)) for _ in range(2)]
    assert answers[0]["stdout_tail"] != answers[1]["stdout_tail"]
    assert not any(answer["sandbox"]["reused"] for answer in answers)
