"""On every twin a constant, a simple and a good program earn clearly increasing rewards.

The programs are in `tests/integration/tasks/ladders/<task>/`, with the least difference between two
neighbours' rewards in `ladder.toml`. They are posted together and run in boxes as any other.
"""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.tasks.folders import find_folders

if TYPE_CHECKING:
    import httpx

LADDERS = Path(__file__).parents[2] / "tasks" / "ladders"
RUNGS = ("constant", "simple", "good")
TASKS = tuple(find_folders())


@pytest.fixture(scope="module")
def answers(client: httpx.Client) -> dict[tuple[str, str], dict[str, Any]]:
    asked = [(task_id, rung) for task_id in TASKS for rung in RUNGS]

    def score(task_id: str, rung: str) -> dict[str, Any]:
        code = (LADDERS / task_id / f"{rung}.py").read_text()
        body = {"task_id": task_id, "code": code, "run_id": "ladders"}
        answer: dict[str, Any] = client.post("/score", json=body).json()
        return answer

    with ThreadPoolExecutor(len(asked)) as pool:
        return dict(zip(asked, pool.map(score, *zip(*asked, strict=True)), strict=True))


@pytest.mark.parametrize("task_id", TASKS)
def test_better_programs_earn_clearly_more(
    task_id: str, answers: dict[tuple[str, str], dict[str, Any]]
) -> None:
    found = [answers[task_id, rung] for rung in RUNGS]
    assert [answer["error"] for answer in found] == [None] * len(RUNGS), found
    margin = tomllib.loads((LADDERS / task_id / "ladder.toml").read_text())["margin"]
    constant, simple, good = (answer["reward"] for answer in found)
    assert simple - constant >= margin, found
    assert good - simple >= margin, found


@pytest.mark.parametrize("task_id", TASKS)
def test_a_program_that_trains_reaches_all_milestones(
    task_id: str, answers: dict[tuple[str, str], dict[str, Any]]
) -> None:
    reached = answers[task_id, "good"]["milestones"]
    assert len(reached) == 7, reached
