"""The contract of `POST /score`: the keys of answers, idempotency keys, waiting, errors."""

from __future__ import annotations

import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = "spooky-author-identification"
SAMPLE = f"/workdir/{TASK}/prepared/public/sample_submission.csv"
HONEST = f'import shutil\nshutil.copy("{SAMPLE}", "submission.csv")\n'
KEYS = [
    "job_id", "solution_id", "task_id", "run_id", "status", "reward", "score",
    "higher_is_better", "valid", "error", "milestones", "duration_seconds", "cpu_seconds",
    "timings", "peak_memory_bytes", "stdout_tail", "stderr_tail", "instrumentation",
    "sandbox", "data_digest", "scheme", "attempt", "medal",
]  # fmt: skip

TIMINGS = ["boot", "execute", "grade", "instrument", "queue", "total"]


def post(client: httpx.Client, path: str = "/score", **fields: object) -> httpx.Response:
    return client.post(path, json={"task_id": TASK, **fields})


@pytest.mark.parametrize("path", ["/score", "/v1/score"])
@pytest.mark.parametrize(
    "fields",
    [
        {"code": HONEST},
        {"completion": f"A plan.\n```python\n{HONEST}```\n"},
        {"completion": "no code at all"},
        {"code": "raise SystemExit(2)"},
    ],
    ids=["code", "completion", "no code", "failing"],
)
def test_every_answer_has_the_same_keys(
    client: httpx.Client, path: str, fields: dict[str, str]
) -> None:
    answer = post(client, path, **fields).json()
    assert list(answer) == KEYS
    assert sorted(answer["timings"]) == TIMINGS
    assert sorted(answer["instrumentation"]) == ["kind", "model", "reason", "verified"]
    assert sorted(answer["sandbox"]) == ["contended", "image", "kind", "reused"]
    assert (answer["status"] == "scored") == answer["valid"] == (answer["error"] is None)


def test_the_reward_is_the_score_negated_if_lower_is_better(
    client: httpx.Client,
) -> None:
    answer = post(client, code=HONEST).json()
    assert answer["higher_is_better"] is False
    assert answer["reward"] == -answer["score"] < 0


def test_no_program_or_an_unparsable_one_earns_the_lowest_reward(
    client: httpx.Client,
) -> None:
    prose = post(client, completion="I would use boosting.").json()
    broken = post(client, code="import pandas as pd\ndef f(:\n").json()
    assert (prose["reward"], prose["error"]["kind"]) == (-10.0, "no_code")
    assert (broken["reward"], broken["error"]["kind"]) == (-10.0, "syntax_error")
    assert prose["duration_seconds"] == broken["duration_seconds"] == 0.0


@pytest.mark.parametrize(
    "code",
    ["x = 1\x00", "\ufeffx = (", "(" * 1_000_000, "1+" * 100_000 + "1", "if x:\n\ty\n        z"],
    ids=["NUL", "byte order mark", "parentheses", "long sum", "mixed indentation"],
)
def test_a_text_that_python_cannot_take_is_a_syntax_error(client: httpx.Client, code: str) -> None:
    answer = post(client, code=code).json()
    assert (answer["reward"], answer["error"]["kind"]) == (-10.0, "syntax_error")


@pytest.mark.parametrize("field", ["code", "completion"])
def test_a_lone_surrogate_is_a_syntax_error_and_is_stored(client: httpx.Client, field: str) -> None:
    text = r"print('\ud800')" if field == "code" else r"```python\nprint('\ud800')\n```"
    body = f'{{"task_id": "{TASK}", "{field}": "{text}"}}'
    response = client.post("/score", content=body, headers={"Content-Type": "application/json"})
    answer = response.json()
    assert (answer["reward"], answer["error"]["kind"]) == (-10.0, "syntax_error")
    assert client.get(f"/v1/solutions/{answer['solution_id']}").status_code == 200


BAD_BODIES: dict[str, tuple[str | bytes, int]] = {
    "not JSON": ("task_id=1", 422),
    "truncated": ('{"task_id": "x", "code": "', 422),
    "not UTF-8": (b'{"task_id": "\xff"}', 422),
    "a list": ("[]", 422),
    "a number": ("1", 422),
    "null": ("null", 422),
    "empty": ("", 422),
    "NaN": (f'{{"task_id": "{TASK}", "code": "1", "wall_seconds": NaN}}', 422),
    "a key twice": (f'{{"task_id": "{TASK}", "code": "1", "code": "2"}}', 422),
    "nested too deep": ("[" * 100_000, 422),
    "neither code nor completion": (f'{{"task_id": "{TASK}"}}', 422),
    "both": (f'{{"task_id": "{TASK}", "code": "1", "completion": "1"}}', 422),
    "no task": ('{"code": "1"}', 422),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_malformed_body_is_refused_and_leaves_no_job(client: httpx.Client, name: str) -> None:
    before = count(client)
    content, status = BAD_BODIES[name]
    response = client.post("/score", content=content, headers={"Content-Type": "application/json"})
    assert_problem(response, status, "invalid_request")
    assert count(client) == before


BAD_FIELDS: dict[str, dict[str, Any]] = {
    "zero seconds": {"wall_seconds": 0},
    "negative seconds": {"wall_seconds": -1},
    "endless seconds": {"wall_seconds": 1e9},
    "above the task's limit": {"wall_seconds": 601},
    "seconds as text": {"wall_seconds": "5"},
    "seconds as truth": {"wall_seconds": True},
    "negative wait": {"wait_seconds": -1},
    "step as text": {"step": "1"},
    "negative step": {"step": -1},
    "enormous step": {"step": 2**63},
    "unknown prompt kind": {"prompt_kind": "other"},
    "parent that is no id": {"parent_id": "x"},
    "parent that is unknown": {"parent_id": str(uuid.uuid4())},
    "empty run": {"run_id": ""},
    "long run": {"run_id": "r" * 10_000},
    "code as a list": {"code": ["print(1)"]},
    "an image": {"image": "evil"},
    "a command": {"command": ["sh"]},
    "an environment": {"env": {"A": "b"}},
    "mounts": {"mounts": ["/"]},
    "a callback": {"callback_url": "http://127.0.0.1"},
    "memory": {"memory_bytes": 1 << 50},
    "timeout": {"timeout": 5},
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_field_out_of_bounds_is_refused_and_leaves_no_job(
    client: httpx.Client, name: str
) -> None:
    before = count(client)
    response = post(client, **{"code": "print(1)", **BAD_FIELDS[name]})
    assert_problem(response, 422, "invalid_request")
    assert count(client) == before


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_refused(client: httpx.Client, content_type: str) -> None:
    body = json.dumps({"task_id": TASK, "code": "print(1)"})
    response = client.post("/score", content=body, headers={"Content-Type": content_type})
    assert_problem(response, 415, "invalid_request")


@pytest.mark.parametrize(
    "task_id", ["unknown", "../../etc", "..", "/", "spooky\x00", "é", "x" * 256]
)
def test_an_unknown_task_is_not_found(client: httpx.Client, task_id: str) -> None:
    response = client.post("/score", json={"task_id": task_id, "code": "print(1)"})
    assert_problem(response, 404, "unknown_task")


@pytest.mark.parametrize("task_id", ["", "x" * 10_000, 5, None])
def test_a_malformed_task_id_is_refused(client: httpx.Client, task_id: object) -> None:
    response = client.post("/score", json={"task_id": task_id, "code": "print(1)"})
    assert_problem(response, 422, "invalid_request")


def test_a_large_body_is_refused_by_its_announced_length(client: httpx.Client) -> None:
    response = post(client, code="#" * 50_000_000)
    assert_problem(response, 413, "too_large")


def test_a_large_chunked_body_is_refused_while_it_is_read(client: httpx.Client) -> None:
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b"x" * 1_000_000

    try:
        response = client.post(
            "/score", content=chunks(), headers={"Content-Type": "application/json"}
        )
        assert_problem(response, 413, "too_large")
    except httpx.TransportError:
        assert client.get("/livez").status_code == 200
    assert sent < 1000


def test_unknown_paths_and_methods_are_problem_documents(client: httpx.Client) -> None:
    assert_problem(client.get("/nothing"), 404, "not_found")
    assert_problem(client.get("/score"), 405, "invalid_request")
    assert_problem(client.get("/v1/jobs/nonsense"), 404, "not_found")
    assert_problem(client.get(f"/v1/jobs/{uuid.uuid4()}"), 404, "not_found")
    assert_problem(client.get(f"/v1/solutions/{uuid.uuid4()}"), 404, "not_found")
    assert_problem(client.get("/v1/tasks/unknown"), 404, "unknown_task")
    assert_problem(client.get("/v1/solutions", params={"order": "size"}), 422, "invalid_request")
    assert_problem(client.get("/v1/solutions", params={"cursor": "x"}), 422, "invalid_request")
    assert_problem(client.get("/v1/solutions", params={"limit": 0}), 422, "invalid_request")
    assert_problem(client.get("/v1/solutions", params={"where": "1"}), 422, "invalid_request")


def test_repeated_requests_with_one_key_run_the_program_once(client: httpx.Client) -> None:
    key, run_id = str(uuid.uuid4()), str(uuid.uuid4())
    code = "import time\ntime.sleep(0.5)\n"

    def send(_: int) -> dict[str, Any]:
        answer: dict[str, Any] = post(client, code=code, run_id=run_id, idempotency_key=key).json()
        return answer

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    answers.append(send(9))
    assert len({answer["job_id"] for answer in answers}) == 1
    assert all(answer == answers[0] for answer in answers)
    rows = client.get("/v1/solutions", params={"run_id": run_id}).json()["solutions"]
    assert len(rows) == 1


def test_the_key_may_come_as_a_header_but_not_as_another_one(client: httpx.Client) -> None:
    key = str(uuid.uuid4())
    body = {"task_id": TASK, "code": "print(1)"}
    first = client.post("/score", json=body, headers={"Idempotency-Key": key}).json()
    second = client.post("/score", json={**body, "idempotency_key": key}).json()
    assert first["job_id"] == second["job_id"]
    clash = client.post(
        "/score", json={**body, "idempotency_key": "other"}, headers={"Idempotency-Key": key}
    )
    assert_problem(clash, 422, "invalid_request")


def test_a_key_with_another_body_is_a_conflict_and_runs_nothing(client: httpx.Client) -> None:
    key = str(uuid.uuid4())
    post(client, code="print(1)", idempotency_key=key)
    before = count(client)
    assert_problem(post(client, code="print(2)", idempotency_key=key), 409, "conflict")
    assert count(client) == before


def test_a_short_wait_returns_the_job_which_has_the_answer_later(
    client: httpx.Client,
) -> None:
    response = post(client, code="import time\ntime.sleep(1)\n", wait_seconds=0)
    assert response.status_code == 202
    job = response.json()
    assert sorted(job) == ["job_id", "status"]
    ended = client.get(f"/v1/jobs/{job['job_id']}", params={"wait_seconds": 60})
    assert ended.status_code == 200
    assert ended.json()["job_id"] == job["job_id"]
    assert list(ended.json()) == KEYS


def test_a_job_survives_its_client_which_finds_it_by_key(
    client: httpx.Client,
) -> None:
    body = {"code": "import time\ntime.sleep(1)\n", "idempotency_key": str(uuid.uuid4())}
    with pytest.raises(httpx.ReadTimeout):
        client.post("/score", json={"task_id": TASK, **body}, timeout=0.2)
    answer = post(client, **body).json()
    assert answer["attempt"] == 1
    assert answer["duration_seconds"] >= 1


def test_durations_leave_out_the_queue(client: httpx.Client) -> None:
    slots = 8
    barrier = threading.Barrier(slots)

    def send(_: int) -> dict[str, Any]:
        barrier.wait()
        answer: dict[str, Any] = post(client, code="import time\ntime.sleep(0.4)\n").json()
        return answer

    with ThreadPoolExecutor(slots) as pool:
        answers = list(pool.map(send, range(slots)))
    assert max(answer["timings"]["queue"] for answer in answers) > 0.4
    for answer in answers:
        timings = answer["timings"]
        parts = [timings[name] for name in ("queue", "instrument", "boot", "execute", "grade")]
        assert answer["duration_seconds"] == timings["execute"] >= 0.4
        assert timings["total"] >= sum(parts) * 0.999


def test_the_server_answers_while_programs_run(client: httpx.Client) -> None:
    with ThreadPoolExecutor(4) as pool:
        running = [
            pool.submit(post, client, code="while True: pass", wall_seconds=2.0) for _ in range(4)
        ]
        for _ in range(20):
            assert client.get("/livez").json() == {"alive": True}
            time.sleep(0.02)
        for future in running:
            assert future.result().json()["error"]["kind"] == "timeout"


def test_a_child_knows_its_parent_and_the_parent_its_child(client: httpx.Client) -> None:
    parent = post(client, code=HONEST).json()["solution_id"]
    child = post(client, code=HONEST, parent_id=parent, prompt_kind="improve").json()["solution_id"]
    shown = client.get(f"/v1/solutions/{child}").json()
    assert [line["solution_id"] for line in shown["lineage"]["ancestors"]] == [parent]
    assert (shown["parent_id"], shown["prompt_kind"], shown["code"]) == (parent, "improve", HONEST)
    lineage = client.get(f"/v1/solutions/{parent}").json()["lineage"]
    assert [line["solution_id"] for line in lineage["children"]] == [child]


def test_solutions_are_listed_by_filter_and_page(client: httpx.Client) -> None:
    run_id = str(uuid.uuid4())
    for code in (HONEST, "import pandas", "print(1)"):
        post(client, code=code, run_id=run_id)
    query: dict[str, Any] = {"run_id": run_id, "limit": 2}
    first = client.get("/v1/solutions", params=query).json()
    second = client.get("/v1/solutions", params={**query, "cursor": first["next_cursor"]}).json()
    rewards = [line["reward"] for line in first["solutions"] + second["solutions"]]
    assert len(rewards) == 3
    assert rewards == sorted(rewards, reverse=True)
    assert second["next_cursor"] is None
    valid = client.get("/v1/solutions", params={"run_id": run_id, "valid": True}).json()
    assert [line["valid"] for line in valid["solutions"]] == [True]


def test_tasks_are_listed_and_described(client: httpx.Client) -> None:
    listed = client.get("/v1/tasks").json()["tasks"]
    assert TASK in [task["id"] for task in listed]
    described = client.get(f"/v1/tasks/{TASK}").json()
    assert described["columns"] == ["id", "EAP", "HPL", "MWS"]
    assert described["public_folder"] == f"/workdir/{TASK}/prepared/public"
    assert "submission.csv" in described["description"]


def test_a_task_comes_with_a_briefing_within_its_budget(client: httpx.Client) -> None:
    described = client.get(f"/v1/tasks/{TASK}").json()
    assert described["budget"] == 6000
    short = client.get(f"/v1/tasks/{TASK}", params={"budget": 1600}).json()
    assert short["budget"] == 1600
    assert len(short["briefing"]) <= 1600 < len(described["briefing"]) <= 6000
    for task in (short, described):
        assert "id,EAP,HPL,MWS" in task["briefing"]
        assert "scikit-learn " in task["briefing"]
    for wrong in (1599, 200_001, "many"):
        response = client.get(f"/v1/tasks/{TASK}", params={"budget": wrong})
        assert_problem(response, 422, "invalid_request")


def test_an_integer_may_be_written_as_a_float(client: httpx.Client) -> None:
    body = {"task_id": TASK, "code": "print(1)", "step": 3.0, "idempotency_key": str(uuid.uuid4())}
    first = client.post("/score", json=body)
    assert first.status_code == 200, first.text
    again = client.post("/score", json={**body, "step": 3})
    assert again.json()["job_id"] == first.json()["job_id"]
    for step in (3.5, 1e30, -1.0):
        assert_problem(client.post("/score", json={**body, "step": step}), 422, "invalid_request")


def test_health_and_version_name_their_parts(client: httpx.Client) -> None:
    ready = client.get("/readyz").json()
    assert ready["ready"] is True
    assert sorted(ready) == ["database", "lm", "ready", "sandbox"]
    assert client.get("/version").json()["name"] == "reward-server"


def test_the_openapi_document_describes_the_score_request(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    body = document["paths"]["/v1/score"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"] == {"$ref": "#/components/schemas/ScoreRequest"}
    assert "completion" in document["components"]["schemas"]["ScoreRequest"]["properties"]
    assert {"200", "202", "409", "413", "422", "429", "503"} <= set(
        document["paths"]["/v1/score"]["post"]["responses"]
    )


def count(client: httpx.Client) -> int:
    lines = client.get("/v1/solutions", params={"order": "time", "limit": 500}).json()
    return len(lines["solutions"])


def assert_problem(response: httpx.Response, status: int, kind: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert sorted(problem) == ["blame", "detail", "kind", "retryable", "status", "title", "type"]
    assert (problem["kind"], problem["blame"], problem["status"]) == (kind, "request", status)
    assert "Traceback" not in response.text
