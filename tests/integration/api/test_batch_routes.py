"""Batches: accepted whole or not at all, streamed as items end, complete with `min_complete`."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import wait_until
from tests.support.job_client import TASK, JobClient, item, nap

if TYPE_CHECKING:
    import httpx


def send(team: JobClient, items: list[dict[str, object]], **fields: object) -> httpx.Response:
    return team.http.post("/v1/batches", json={"items": items, **fields})


def accept(
    team: JobClient, items: list[dict[str, object]], **fields: object
) -> tuple[str, list[str]]:
    response = send(team, items, **fields)
    assert response.status_code == 202, response.text
    return response.json()["batch_id"], response.json()["job_ids"]


def look(team: JobClient, batch_id: str, seconds: float = 60) -> dict[str, Any]:
    response = team.http.get(f"/v1/batches/{batch_id}", params={"wait_seconds": seconds})
    assert response.status_code == 200, response.text
    batch: dict[str, Any] = response.json()
    return batch


def test_results_come_in_the_order_of_ends_with_their_index(team: JobClient) -> None:
    batch_id, jobs = accept(team, [item(nap(1.5)), item(nap(0.2)), item("print(1)")])
    assert len(set(jobs)) == 3
    batch = look(team, batch_id)
    assert batch["complete"]
    assert batch["errors"] == []
    assert [one["index"] for one in batch["results"]] == [1, 2, 0]
    assert [one["job_id"] for one in batch["results"]] == [jobs[1], jobs[2], jobs[0]]
    for one in batch["results"]:
        assert {**team.answer(one["job_id"]), "index": one["index"]} == one
    assert look(team, batch_id, 0) == batch


def test_an_unfinished_batch_shows_its_results_so_far(team: JobClient) -> None:
    batch_id, jobs = accept(team, [item(nap(30)), item("print(1)")])
    wait_until(lambda: len(look(team, batch_id, 0)["results"]) == 1, 30)
    batch = look(team, batch_id, 0.2)
    assert not batch["complete"]
    team.cancel(jobs[0])
    batch = look(team, batch_id)
    assert batch["complete"]
    (lost,) = batch["errors"]
    assert (lost["index"], lost["status"], lost["error"]["kind"]) == (0, "cancelled", "cancelled")
    assert "reward" not in lost


def test_a_batch_may_contain_the_same_program_twice(team: JobClient, run_id: str) -> None:
    key = str(uuid.uuid4())
    items = [item("print(1)", run_id=run_id)] * 2
    items += [item("print(2)", run_id=run_id, idempotency_key=key)] * 2
    batch_id, jobs = accept(team, items)
    assert (len(set(jobs[:2])), len(set(jobs[2:]))) == (2, 1)
    batch = look(team, batch_id)
    assert sorted(one["index"] for one in batch["results"]) == [0, 1, 2, 3]
    assert len(team.solutions(run_id)) == 3


def test_a_batch_is_complete_early_and_the_rest_continues(team: JobClient, run_id: str) -> None:
    items = [item(nap(2), run_id=run_id)] + [item(nap(0.2), run_id=run_id)] * 3
    begun = time.monotonic()
    batch_id, jobs = accept(team, items, min_complete=2)
    batch = look(team, batch_id)
    assert batch["complete"]
    assert time.monotonic() - begun < 1.8
    assert 0 not in [one["index"] for one in batch["results"]]
    assert team.answer(jobs[0])["stdout_tail"] == "through\n"
    wait_until(lambda: len(look(team, batch_id, 0)["results"]) == 4, 30)


def test_a_batch_is_complete_early_and_the_rest_is_cancelled(team: JobClient, run_id: str) -> None:
    outside = team.submit("print(0)", run_id=run_id, idempotency_key=run_id)
    joined = item("print(0)", run_id=run_id, idempotency_key=run_id)
    naps = [item(nap("63.5"), run_id=run_id), item(nap("64.5"), run_id=run_id)]
    items = [item("print(1)", run_id=run_id), joined, *naps]
    batch_id, jobs = accept(team, items, min_complete=2, rest="cancel")
    batch = look(team, batch_id)
    assert [one["index"] for one in batch["results"]] in ([0, 1], [1, 0])
    wait_until(lambda: len(look(team, batch_id, 0)["errors"]) == 2, 30)
    wait_until(lambda: not team.runs("63.5") and not team.runs("64.5"), 30)
    assert {team.get(job_id).json()["kind"] for job_id in jobs[2:]} == {"cancelled"}
    assert team.answer(outside)["stdout_tail"] == "0\n"
    assert len(team.solutions(run_id)) == 2


def test_a_batch_does_not_cancel_jobs_it_only_joined(team: JobClient) -> None:
    key = str(uuid.uuid4())
    theirs = team.submit(nap(1.5), idempotency_key=key)
    items = [item("print(1)"), item(nap(1.5), idempotency_key=key)]
    batch_id, _ = accept(team, items, min_complete=1, rest="cancel")
    assert look(team, batch_id)["complete"]
    assert team.answer(theirs)["stdout_tail"] == "through\n"


def test_a_conflict_within_a_batch_refuses_all_of_it(team: JobClient) -> None:
    taken, free = str(uuid.uuid4()), str(uuid.uuid4())
    team.submit("print(1)", idempotency_key=taken)
    items = [item("print(2)", idempotency_key=free), item("print(3)", idempotency_key=taken)]
    response = send(team, items)
    assert (response.status_code, response.json()["kind"]) == (409, "conflict")
    assert team.post("print(4)", idempotency_key=free).status_code == 202


def test_an_error_in_a_batch_names_the_item(team: JobClient) -> None:
    unknown = send(team, [item("print(1)"), {"task_id": "unknown", "code": "print(1)"}])
    assert (unknown.status_code, unknown.json()["kind"]) == (404, "unknown_task")
    assert "items.1" in unknown.json()["detail"]
    neither = send(team, [{"task_id": TASK}])
    assert neither.status_code == 422
    assert "items.0" in neither.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {"items": []},
        {"items": [item("print(1)")], "min_complete": 2},
        {"items": [item("print(1)")], "min_complete": 0},
        {"items": [item("print(1)")], "rest": "other"},
        {"items": [item("print(1)", wait_seconds=1)]},
        {"items": item("print(1)")},
    ],
)
def test_an_invalid_batch_is_refused(team: JobClient, body: dict[str, object]) -> None:
    for path in ("/v1/batches", "/score/batch"):
        response = team.http.post(path, json=body)
        assert (response.status_code, response.json()["kind"]) == (422, "invalid_request")


def test_an_unknown_batch_is_not_found(team: JobClient) -> None:
    assert team.http.get(f"/v1/batches/{uuid.uuid4()}").status_code == 404
    assert team.http.get("/v1/batches/nonsense").status_code == 404


def test_a_batch_streams_a_line_for_every_end(team: JobClient) -> None:
    body = {"items": [item(nap(1.5)), item(nap(0.1)), item("raise SystemExit(1)")]}
    with team.http.stream("POST", "/score/batch", json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("application/x-ndjson")
        lines = filter(str.strip, response.iter_lines())
        came = [(time.monotonic(), json.loads(line)) for line in lines]
    assert [one["index"] for _, one in came] == [1, 2, 0]
    assert came[2][0] - came[0][0] > 0.8
    assert all(isinstance(one["reward"], float) for _, one in came)
    assert look(team, response.headers["batch-id"], 0)["results"] == [one for _, one in came]


def test_a_stream_ends_when_the_batch_is_complete(team: JobClient) -> None:
    body = {"items": [item(nap("65.5")), item("print(1)")], "min_complete": 1, "rest": "cancel"}
    response = team.http.post("/score/batch", json=body)
    lines = [json.loads(line) for line in response.text.splitlines() if line.strip()]
    assert [one["index"] for one in lines] == [1]
    wait_until(lambda: not team.runs("65.5"), 30)


def test_a_client_that_hangs_up_finds_the_batch_again(team: JobClient, run_id: str) -> None:
    items = [item("print(0)", run_id=run_id)] + [item(nap(0.7), run_id=run_id)] * 3
    with team.http.stream("POST", "/score/batch", json={"items": items}) as response:
        batch_id = response.headers["batch-id"]
        first = json.loads(next(line for line in response.iter_lines() if line.strip()))
    assert first["index"] == 0
    batch = look(team, batch_id)
    assert sorted(one["index"] for one in batch["results"]) == [0, 1, 2, 3]
    assert batch["results"][0] == first
    assert len(team.solutions(run_id)) == 4
