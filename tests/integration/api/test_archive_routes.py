"""Solutions of a run over HTTP: search, statistics, lineage, export and import."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.conftest import start_server, stop_server
from tests.integration.api.test_command_line import run
from tests.support.job_client import LEAN, TASK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import RunningServer

SAMPLE = f"/workdir/{TASK}/prepared/public/sample_submission.csv"
HONEST = f'import shutil\nshutil.copy("{SAMPLE}", "submission.csv")\nprint("copied")\n'

Recorded = tuple[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def recorded(client: httpx.Client) -> Recorded:
    """Make a run of three solutions, one of which improves on another."""
    run_id = f"recorded/{uuid.uuid4()}"

    def score(step: int, completion: str, **fields: object) -> dict[str, Any]:
        body = {"task_id": TASK, "completion": completion, "run_id": run_id, "step": step}
        answer: dict[str, Any] = client.post("/score", json=body | fields).json()
        return answer

    first = score(0, f"Copy the sample.\n```python\n{HONEST}```\n")
    parent = {"parent_id": first["solution_id"], "prompt_kind": "improve"}
    second = score(1, f"Copy it again.\n```python\n{HONEST}# again\n```\n", **parent)
    third = score(1, "```python\nimport numpy\nraise SystemExit(3)\n```\n", **parent)
    return run_id, [first, second, third]


def answers(client: httpx.Client, run_id: str, solutions: list[dict[str, Any]]) -> list[Any]:
    """Ask everything there is to ask about a run."""
    paths = [f"/v1/runs/{run_id}/statistics", f"/v1/solutions?run_id={run_id}&order=time"]
    for one in solutions:
        paths += [f"/v1/solutions/{one['solution_id']}", f"/v1/jobs/{one['job_id']}"]
        paths += [f"/v1/solutions/{one['solution_id']}/lineage"]
    found = [client.get(path) for path in paths]
    assert {response.status_code for response in found} == {200}
    return [response.json() for response in found]


def test_an_imported_run_gives_the_same_answers(
    server: RunningServer, client: httpx.Client, recorded: Recorded, own_dir: Path, tmp_path: Path
) -> None:
    run_id, solutions = recorded
    file = tmp_path / "run.parquet"
    said = run("solutions", "export", file, "--run", run_id, "--data-dir", server.data_dir)
    assert "3 solutions were written" in said
    assert "3 of 3" in run("solutions", "import", file, "--data-dir", own_dir)
    assert "0 of 3" in run("solutions", "import", file, "--data-dir", own_dir)
    process, url = start_server(own_dir, tmp_path / "log", LEAN)
    try:
        with httpx.Client(base_url=url, timeout=60) as other:
            assert answers(other, run_id, solutions) == answers(client, run_id, solutions)
    finally:
        stop_server(process)


def test_a_run_is_exported_over_http(client: httpx.Client, recorded: Recorded) -> None:
    run_id, solutions = recorded
    response = client.get("/v1/solutions/export", params={"run_id": run_id})
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert [line["id"] for line in lines] == [one["solution_id"] for one in solutions]
    assert HONEST.strip() in lines[0]["code"]


def test_an_export_with_an_invalid_filter_is_refused(client: httpx.Client) -> None:
    response = client.get("/v1/solutions/export", params={"parent_id": "x" * 36})
    assert response.status_code == 422
    assert response.json()["detail"] == "parent_id is not the id of a solution"
    nothing = client.get("/v1/solutions/export", params={"run_id": "there is no such run"})
    assert (nothing.status_code, nothing.text) == (200, "")


def test_statistics_of_a_run_come_step_by_step(
    server: RunningServer, client: httpx.Client, recorded: Recorded
) -> None:
    run_id, solutions = recorded
    steps = client.get(f"/v1/runs/{run_id}/statistics").json()["steps"]
    assert [(one["step"], one["is_total"], one["solutions"]) for one in steps] == [
        (None, True, 3),
        (0, False, 1),
        (1, False, 2),
    ]
    assert steps[2]["share_valid"] == steps[2]["share_improve"] - 0.5 == 0.5
    assert steps[2]["failures"] == {"nonzero_exit": 1}
    assert steps[0]["max_reward"] == solutions[0]["reward"]
    assert run_id in {one["run_id"] for one in client.get("/v1/runs").json()["runs"]}
    assert "nonzero_exit 1" in run("solutions", "statistics", run_id, "--url", server.url)
    assert client.get("/v1/runs/none/statistics").status_code == 404


def test_a_lineage_is_shown_with_its_changes(
    server: RunningServer, client: httpx.Client, recorded: Recorded
) -> None:
    _, (first, second, third) = recorded
    line = client.get(f"/v1/solutions/{third['solution_id']}/lineage").json()["lineage"]
    assert [one["solution_id"] for one in line] == [first["solution_id"], third["solution_id"]]
    assert line[1]["reward_change"] == pytest.approx(third["reward"] - first["reward"])
    shown = run("solutions", "lineage", first["solution_id"], "--url", server.url)
    assert second["solution_id"] in shown
    assert client.get(f"/v1/solutions/{uuid.uuid4()}/lineage").status_code == 404


def test_solutions_are_searched_over_http(client: httpx.Client, recorded: Recorded) -> None:
    run_id, (_, second, third) = recorded

    def found(**wanted: object) -> list[str]:
        query = {"run_id": run_id, **wanted}
        lines = client.get("/v1/solutions", params=query).json()["solutions"]  # type: ignore[arg-type]
        return [line["solution_id"] for line in lines]

    assert found(text="copy again") == [second["solution_id"]]
    assert found(error_kind="nonzero_exit", step=1) == [third["solution_id"]]
    assert found(max_reward=-9.5, min_duration=0) == [third["solution_id"]]
    for nonsense in ({"step": -1}, {"min_reward": "nan"}, {"text": ""}, {"parent_id": "x"}):
        assert client.get("/v1/solutions", params=nonsense).status_code == 422
