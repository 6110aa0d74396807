"""The command line against a running server and on files."""

from __future__ import annotations

import json
import math
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import COMMAND, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import RunningServer

TASK = "spooky-author-identification"
VECTORS = ROOT / "tests" / "data" / "vectors"


def run(*arguments: object, status: int = 0) -> str:
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(
        f'import shutil\nshutil.copy("/workdir/{TASK}/prepared/public/sample_submission.csv", '
        '"submission.csv")\nprint("[bold] as it is")\n'
    )
    return file


def test_a_program_is_scored_and_found_again(server: RunningServer, program: Path) -> None:
    answer = json.loads(run("score", program, "--task", TASK, "--url", server.url, "--json"))
    assert answer["status"] == "scored"
    shown = run("solutions", "show", answer["solution_id"], "--url", server.url)
    assert "shutil.copy" in shown
    assert "[bold] as it is" in shown
    listed = run("solutions", "list", "--url", server.url, "--order", "time", "--json")
    assert answer["solution_id"] in listed
    assert "spooky" in run("solutions", "list", "--task", TASK, "--url", server.url)


def test_a_text_file_is_a_completion(server: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "completion.md"
    file.write_text("A plan.\n```python\nprint(1)\n```\n")
    shown = run("score", file, "--task", TASK, "--url", server.url)
    assert "no_submission" in shown


def test_expected_errors_are_reported_in_one_line(server: RunningServer, program: Path) -> None:
    unknown = run("score", program, "--task", "nothing", "--url", server.url, status=1)
    assert "there is no such task" in unknown
    silent = run("score", program, "--task", TASK, "--url", "http://127.0.0.1:9", status=1)
    assert "does not answer" in silent
    assert "Traceback" not in unknown + silent


def test_tasks_are_listed_checked_and_graded_offline(data_dir: Path) -> None:
    assert TASK in run("tasks", "list", "--data-dir", data_dir)
    assert "ok" in run("tasks", "check", TASK, "--data-dir", data_dir)
    sample = data_dir / TASK / "prepared" / "public" / "sample_submission.csv"
    options = ("--submission", sample, "--data-dir", data_dir, "--json")
    graded = json.loads(run("tasks", "grade", TASK, *options))
    assert graded["valid"] is True
    assert graded["score"] > 1


def test_the_briefing_of_a_task_is_printed(data_dir: Path) -> None:
    shown = run("tasks", "show", TASK, "--data-dir", data_dir)
    assert shown.startswith("# Spooky Author Identification\n")
    assert "to predict" in shown
    assert len(run("tasks", "show", TASK, "--budget", 1600, "--data-dir", data_dir)) <= 1600
    refused = run("tasks", "show", TASK, "--budget", 1599, "--data-dir", data_dir, status=1)
    assert "from 1600 to" in refused
    assert "no such task" in run("tasks", "show", "none", "--data-dir", data_dir, status=1)


def test_a_file_is_graded_against_other_answers_without_prepared_data(tmp_path: Path) -> None:
    case = VECTORS / TASK / "case-14-noisy"
    line = ("--submission", case / "submission.csv", "--answers", case / "answers.csv")
    graded = json.loads(run("tasks", "grade", TASK, *line, "--json", "--data-dir", tmp_path))
    expected = json.loads((case / "expected.json").read_text())["raw_score"]
    assert graded["score"] == pytest.approx(expected, abs=1e-9)


def test_every_case_folder_is_a_line_of_json() -> None:
    lines = [json.loads(line) for line in run("tasks", "grade", "--cases", VECTORS).splitlines()]
    assert len(lines) == len(list(VECTORS.rglob("expected.json")))
    for line in lines:
        assert sorted(line) == ["path", "score", "valid"]
        expected = json.loads((VECTORS / line["path"] / "expected.json").read_text())
        is_taken = expected["report"]["submission_exists"]
        is_number = math.isfinite(float(expected.get("raw_score", "nan")))
        assert line["valid"] == (is_taken and is_number), line


def test_preparing_needs_a_source(tmp_path: Path) -> None:
    assert "--twin or --raw" in run("tasks", "prepare", TASK, "--data-dir", tmp_path, status=2)
    missing = run("tasks", "prepare", TASK, "--raw", tmp_path, "--data-dir", tmp_path, status=1)
    assert "train" in missing
    assert "Traceback" not in missing
