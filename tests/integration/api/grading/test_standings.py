"""Standings, schemes and rescoring, on a server whose task has original data and a leaderboard."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from reward_server.grade.process import grade_file
from reward_server.tasks.base import Source
from reward_server.tasks.manifest import read_manifest, write_manifest
from reward_server.tasks.registry import Registry
from tests.conftest import COMMAND, ROOT, start_server, stop_server

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK, TWIN = "spooky-author-identification", "nomad2018-predict-transparent-conductors"
COPY = """
import shutil
shutil.copy("/workdir/{}/prepared/public/sample_submission.csv", "submission.csv")
"""
EVEN = """
import pandas as pd
table = pd.read_csv("/workdir/spooky-author-identification/prepared/public/sample_submission.csv")
table[["EAP", "HPL", "MWS"]] = [0.5, 0.25, 0.25]
table.to_csv("submission.csv", index=False)
"""
NORMALISED = {"REWARD_SERVER_REWARD__KIND": "normalised"}


@pytest.fixture(scope="module")
def own_dir(data_dir: Path) -> Iterator[Path]:
    """Give two tasks: one as if of original data, with a leaderboard around its sample; a twin."""
    with tempfile.TemporaryDirectory(prefix="reward-server-standings-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for task_id in (TASK, TWIN):
            shutil.copytree(data_dir / task_id / "prepared", folder / task_id / "prepared")
        sample = sample_score(folder)
        prepared = folder / TASK / "prepared"
        manifest = read_manifest(prepared)
        write_manifest(prepared, replace(manifest, source=Source.RAW, sample_score=sample))
        board = [sample - 1.0, sample - 0.5, sample, sample + 0.2, sample + 0.4, sample + 5.0]
        lines = ["team,score", *(f"{team},{score!r}" for team, score in enumerate(board)), "6,"]
        (folder / TASK / "leaderboard.csv").write_text("\n".join(lines) + "\n")
        yield folder


def sample_score(data_dir: Path) -> float:
    task = Registry(data_dir).get(TASK)
    sample = task.public / task.card.sample_submission
    score = grade_file(task.folder, sample, task.answers).score
    assert score is not None
    return score


@pytest.fixture(scope="module")
def own_client(own_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    process, url = start_server(own_dir, tmp_path_factory.mktemp("own") / "log", NORMALISED)
    try:
        with httpx.Client(base_url=url, timeout=300) as client:
            yield client
    finally:
        stop_server(process)


def run(own_dir: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [COMMAND, *arguments, "--data-dir", own_dir],
        env={**os.environ, "COLUMNS": "200", **variables},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def score(client: httpx.Client, code: str, task_id: str = TASK, **fields: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.post(
        "/score", json={"task_id": task_id, "code": code, **fields}
    ).json()
    return answer


def shown(client: httpx.Client, answer: dict[str, Any]) -> dict[str, Any]:
    solution: dict[str, Any] = client.get(f"/v1/solutions/{answer['solution_id']}").json()
    return solution


def test_the_sample_submission_has_a_standing_but_no_reward(
    own_client: httpx.Client,
) -> None:
    answer = score(own_client, COPY.format(TASK))
    assert (answer["reward"], answer["scheme"], answer["medal"]) == (0.0, "normalised", None)
    assert shown(own_client, answer)["standing"] == {
        "medal": None,
        "position": 3,
        "teams": 6,
        "percentile": 0.5,
        "above_median": True,
        "exact": True,
    }


def test_a_failure_earns_less_and_has_no_standing(own_client: httpx.Client) -> None:
    answer = score(own_client, "import pandas\nraise SystemExit(1)\n")
    assert -1.0 <= answer["reward"] < 0
    assert shown(own_client, answer)["standing"] is None


def test_a_twin_wins_no_medal_and_has_an_inexact_standing(own_client: httpx.Client) -> None:
    answer = score(own_client, COPY.format(TWIN), TWIN)
    standing = shown(own_client, answer)["standing"]
    assert (standing["medal"], standing["teams"], standing["exact"]) == (None, 878, False)
    assert 1 <= standing["position"] <= 879


def test_lists_and_details_show_the_version_of_the_scheme(own_client: httpx.Client) -> None:
    solution = shown(own_client, score(own_client, COPY.format(TASK)))
    assert (solution["scheme"], solution["scheme_version"], solution["rewards"]) == (
        "normalised",
        1,
        {},
    )
    listed = own_client.get("/v1/solutions").json()["solutions"]
    assert {line["scheme_version"] for line in listed} == {1}


def test_rescoring_adds_rewards_and_changes_no_answer(
    own_client: httpx.Client, own_dir: Path
) -> None:
    answers = [score(own_client, code, run_id="one") for code in (COPY.format(TASK), EVEN, "x = 1")]
    score(own_client, EVEN, run_id="other")
    asked = ("rescore", "--run", "one", "--scheme")
    (line,) = run(own_dir, *asked, "percentile", "--json").splitlines()
    summary = json.loads(line)
    solutions = [shown(own_client, answer) for answer in answers]
    values = [solution["rewards"]["percentile"]["value"] for solution in solutions]
    assert values[0] == 0.5 == solutions[0]["standing"]["percentile"]
    assert values[1] == solutions[1]["standing"]["percentile"]
    assert values[2] == -1.0
    assert (summary["task_id"], summary["rescored"], summary["skipped"]) == (TASK, 3, 0)
    assert summary["mean_after"] == pytest.approx(sum(values) / 3)
    assert summary["mean_before"] == pytest.approx(sum(a["reward"] for a in answers) / 3)
    for answer, solution in zip(answers, solutions, strict=True):
        assert {name: solution[name] for name in answer} == answer
    assert run(own_dir, *asked, "percentile", "--json").splitlines() == [line]
    assert [shown(own_client, answer) for answer in answers] == solutions
    assert TASK in run(own_dir, *asked, "paper")
    rewards = shown(own_client, answers[0])["rewards"]
    assert (sorted(rewards), rewards["paper"]["scheme_version"]) == (["paper", "percentile"], 1)
    assert rewards["paper"]["value"] == -answers[0]["score"]


def test_rescoring_by_the_active_scheme_uses_its_settings(
    own_client: httpx.Client, own_dir: Path
) -> None:
    answer = score(own_client, "x = 1", run_id="set")
    asked = ("rescore", "--run", "set", "--scheme", "normalised")
    run(own_dir, *asked, **NORMALISED, REWARD_SERVER_REWARD__FAILURE="-2")
    assert shown(own_client, answer)["rewards"]["normalised"]["value"] == -2.0
    run(own_dir, *asked)
    assert shown(own_client, answer)["rewards"]["normalised"]["value"] == -1.0


def test_rescoring_works_without_a_server(own_dir: Path, tmp_path: Path) -> None:
    folder = own_dir / "alone"
    folder.mkdir(mode=0o755)
    for task_id in (TASK, TWIN):
        (folder / task_id).symlink_to(own_dir / task_id)
    assert "no such solutions" in run(folder, "rescore", "--scheme", "paper")
    process, url = start_server(folder, tmp_path / "log")
    with httpx.Client(base_url=url, timeout=300) as client:
        paper = score(client, EVEN)
    stop_server(process)
    (line,) = run(
        folder, "rescore", "--scheme", "normalised", "--task", TASK, "--json"
    ).splitlines()
    assert json.loads(line)["mean_before"] == paper["reward"]
    assert 0 <= json.loads(line)["mean_after"] <= 1
    assert not (folder / "postgres" / "data" / "postmaster.pid").exists()


def test_a_graded_file_has_a_standing_and_on_original_data_a_medal(own_dir: Path) -> None:
    public = own_dir / TASK / "prepared" / "public"
    asked = ("tasks", "grade", TASK, "--json", "--submission")
    sample = json.loads(run(own_dir, *asked, str(public / "sample_submission.csv")))
    assert (sample["standing"]["position"], sample["standing"]["medal"]) == (3, None)
    answers = own_dir / TASK / "prepared" / "private" / "test.csv"
    best = json.loads(run(own_dir, *asked, str(answers)))["standing"]
    assert (best["position"], best["medal"], best["percentile"]) == (1, "gold", 1.0)
    other = json.loads(run(own_dir, *asked, str(answers), "--answers", str(answers)))["standing"]
    assert (other["position"], other["medal"]) == (1, None)
    invalid = json.loads(run(own_dir, *asked, str(public / "train.csv")))
    assert (invalid["valid"], invalid["standing"]) == (False, None)
