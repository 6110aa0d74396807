"""Prompts over HTTP: they ask to improve on programs that were scored before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.api.test_command_line import run

if TYPE_CHECKING:
    import httpx

    from tests.conftest import RunningServer

TASK = "spooky-author-identification"
NOBODY = "00000000-0000-4000-8000-000000000000"
COPY = (
    'import shutil\nshutil.copy("/workdir/{task}/prepared/public/sample_submission.csv", '
    '"submission.csv")\nprint("validation loss: {loss}")\n'
)


def ask(client: httpx.Client, **fields: object) -> list[dict[str, Any]]:
    response = client.post("/v1/prompts", json={"task_id": TASK} | fields)
    assert response.status_code == 200, response.text
    prompts: list[dict[str, Any]] = response.json()["prompts"]
    return prompts


def score(client: httpx.Client, **fields: object) -> dict[str, Any]:
    response = client.post("/score", json={"task_id": TASK} | fields)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_a_run_improves_on_its_last_step(
    client: httpx.Client, server: RunningServer, run_id: str
) -> None:
    first = ask(client, run_id=run_id, n=2, improve_fraction=1.0)
    assert [(p["kind"], p["parent_id"]) for p in first] == [("scratch", None)] * 2
    assert "no valid solution" in first[0]["fallback"]
    code = COPY.format(task=TASK, loss=0.5)
    parent = score(client, code=code, run_id=run_id, step=0)
    failed = score(client, code="import nothing_of_that_name", run_id=run_id, step=0)
    (prompt,) = ask(client, run_id=run_id, step=1, improve_fraction=1.0)
    assert prompt["kind"] == "improve"
    assert prompt["parent_id"] == parent["solution_id"]
    assert prompt["fallback"] is None
    system, user = (message["content"] for message in prompt["messages"])
    assert "./submission.csv" in system
    assert code in user
    assert "validation loss: 0.5" in user
    assert f"It scored {parent['score']:.6g} (lower is better)" in user
    any_parent = ask(client, run_id=run_id, n=40, improve_fraction=1.0, parents="any", seed=1)
    assert {p["parent_id"] for p in any_parent} == {parent["solution_id"], failed["solution_id"]}
    text = next(p for p in any_parent if p["parent_id"] == failed["solution_id"])["messages"][1]
    assert "ModuleNotFoundError" in text["content"]
    score(
        client,
        completion=f"I copy again.\n\n```python\n{COPY.format(task=TASK, loss=0.4)}```",
        run_id=run_id,
        step=1,
        parent_id=prompt["parent_id"],
        prompt_kind="improve",
    )
    found = client.get(f"/v1/runs/{run_id}/best-of-both", params={"task_id": TASK}).json()
    assert (found["samples"], found["improved"], found["children"]) == (2, 1, 1)
    assert found["best_of_both"]["max"] == parent["reward"]
    printed = run("prompts", "--task", TASK, "--run", run_id, "--improve", "1", "--url", server.url)
    assert "validation loss: 0.4" in printed
    assert "improve" in printed


def test_the_same_seed_gives_the_same_prompts(client: httpx.Client, run_id: str) -> None:
    fields = {"run_id": run_id, "n": 16, "seed": 3, "budget": {"characters": 2500}}
    assert ask(client, **fields) == ask(client, **fields)
    for prompt in ask(client, **fields):
        assert sum(len(message["content"]) for message in prompt["messages"]) <= 2500


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n": 0}, "n: "),
        ({"n": 1025}, "n: "),
        ({"n": 1.5}, "n: "),
        ({"improve_fraction": 1.1}, "improve_fraction: "),
        ({"strategy": "luck"}, "previous_step"),
        ({"seed": -1}, "seed: "),
        ({"step": -1}, "step: "),
        ({"temperature": 0}, "temperature: "),
        ({"parents": "none"}, "parents: "),
        ({"scope": "world"}, "scope: "),
        ({"wall_seconds": 0}, "wall_seconds: "),
        ({"budget": {}}, "exactly one of characters and tokens"),
        ({"budget": {"tokens": 5}}, "tokens and tokenizer belong together"),
        ({"budget": {"characters": 5, "tokens": 5}}, "exactly one"),
        ({"budget": {"characters": 100}}, "the shortest prompt of this task needs"),
        ({"budget": {"tokens": 5, "tokenizer": "x"}}, "this server has: none"),
        ({"budget": {"characters": 5000, "lines": 1}}, "budget.lines: "),
        ({"temprature": 1.0}, "temprature: "),
        ({"parent_ids": []}, "parent_ids: "),
        ({"parent_ids": ["x"]}, "parent_ids.0: "),
        ({"parent_ids": [NOBODY], "n": 2, "step": 1}, "leave out n, step"),
    ],
)
def test_invalid_requests_for_prompts_are_explained(
    client: httpx.Client, fields: dict[str, Any], said: str
) -> None:
    response = client.post("/v1/prompts", json={"task_id": TASK} | fields)
    assert response.status_code == 422, response.text
    assert said in response.json()["detail"]


def test_unknown_tasks_are_not_found(client: httpx.Client) -> None:
    assert client.post("/v1/prompts", json={"task_id": "x"}).status_code == 404
    found = client.get("/v1/runs/r/best-of-both", params={"task_id": "x"})
    assert found.status_code == 404
    assert client.get("/v1/runs/r/best-of-both").status_code == 422


def test_the_contract_of_prompts_is_documented(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    paths = document["paths"]
    assert "PromptsRequest" in json.dumps(paths["/v1/prompts"]["post"]["requestBody"])
    body = document["components"]["schemas"]["PromptsRequest"]["properties"]
    assert {"improve_fraction", "parent_ids"} <= body.keys()
    assert "/v1/runs/{run_id}/best-of-both" in paths


def test_prompts_on_exactly_these_solutions(client: httpx.Client, run_id: str) -> None:
    good = score(client, code=COPY.format(task=TASK, loss=0.5), run_id=run_id)["solution_id"]
    failed = score(client, code="import nothing_of_that_name", run_id=run_id)["solution_id"]
    long_code = COPY.format(task=TASK, loss=0.3) + "# and on\n" * 400
    too_long = score(client, code=long_code, run_id=run_id)["solution_id"]
    wanted = [failed, too_long, good, failed]
    prompts = ask(client, parent_ids=wanted, budget={"characters": 3000})
    assert [p["parent_id"] for p in prompts] == [failed, None, good, failed]
    assert [p["kind"] for p in prompts] == ["improve", "scratch", "improve", "improve"]
    assert "does not fit the budget" in prompts[1]["fallback"]
    assert "ModuleNotFoundError" in prompts[0]["messages"][1]["content"]
    assert "validation loss: 0.5" in prompts[2]["messages"][1]["content"]
    body = {"task_id": "random-acts-of-pizza", "parent_ids": [good]}
    other = client.post("/v1/prompts", json=body)
    assert (other.status_code, other.json()["kind"]) == (422, "invalid_request")
    assert "of another task" in other.json()["detail"]
    unknown = client.post("/v1/prompts", json={"task_id": TASK, "parent_ids": [run_id]})
    assert (unknown.status_code, unknown.json()["kind"]) == (404, "not_found")
