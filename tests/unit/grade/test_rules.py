"""What each built-in task accepts and refuses, as MLE-bench's graders do.

The cases are in `rules/<task>.toml`: small answers, submissions that are scored, submissions
that are refused, and the score of the answers themselves. Where a task has many columns, its
file may name `abbreviations` that stand for parts of lines.
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from reward_server.tasks.folders import find_folders
from reward_server.tasks.sdk.modules import load_module
from reward_server.tasks.sdk.submission_table import Caps, read_table
from reward_server.tasks.sdk.tables import parse_csv

FOLDERS = find_folders()


def read_rules(path: Path) -> dict[str, Any]:
    text = path.read_text()
    for short, long in tomllib.loads(text).get("abbreviations", {}).items():
        text = text.replace(f"<{short}>", long)
    return tomllib.loads(text)


RULES = {
    path.stem: read_rules(path) for path in sorted((Path(__file__).parent / "rules").glob("*.toml"))
}


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(task_id, submission, id=f"{task_id}: {what}")
        for task_id, rules in RULES.items()
        for what, submission in rules[kind].items()
    ]


def align(task_id: str, submission: str) -> tuple[Any, Any]:
    answers = RULES[task_id]["answers"].encode()
    table = read_table(submission.encode(), Caps.beside(answers, 1 << 20))
    grader = load_module(FOLDERS[task_id] / "grade.py")
    truth, prediction = grader.align(table, parse_csv(answers))
    return truth, prediction


def grade(task_id: str, submission: str) -> float:
    grader = load_module(FOLDERS[task_id] / "grade.py")
    return float(grader.score(*align(task_id, submission)))


@pytest.mark.parametrize(("task_id", "submission"), cases("valid"))
def test_a_valid_submission_is_scored(task_id: str, submission: str) -> None:
    assert math.isfinite(grade(task_id, submission))


@pytest.mark.parametrize(("task_id", "submission"), cases("invalid"))
def test_an_invalid_submission_is_refused_before_the_metric(task_id: str, submission: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 -- any exception in align is a refusal
        align(task_id, submission)


@pytest.mark.parametrize("task_id", RULES)
def test_the_answers_themselves_have_the_best_score(task_id: str) -> None:
    best = RULES[task_id]["best_score"]
    assert grade(task_id, RULES[task_id]["answers"]) == pytest.approx(best, abs=1e-12)


def test_every_built_in_task_has_rules() -> None:
    assert set(RULES) == set(FOLDERS)


def test_log_loss_clips_but_does_not_rescale() -> None:
    text = "id,EAP,HPL,MWS\na,0.6,0.2,0.200005\nb,0.1,0.8,0.1\nc,0.2,0.2,0.6\n"
    expected = -(math.log(0.6) + math.log(0.8) + math.log(0.6)) / 3
    assert grade("spooky-author-identification", text) == pytest.approx(expected, abs=1e-12)
