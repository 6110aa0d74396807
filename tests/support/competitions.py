"""A small package in MLE-bench's form, and prepared data for its competitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HELPERS = """
class InvalidSubmissionError(Exception):
    pass
"""
# MLE-bench's module of this name makes a folder ./cache on import; nothing of ours may get there.
DATA = """
import pathlib
pathlib.Path("cache").mkdir()
"""
ACCURACY = """
import pathlib
from mlebench.grade_helpers import InvalidSubmissionError
from .words import COLUMN

def grade(submission, answers):
    if len(submission) != len(answers):
        raise InvalidSubmissionError("the lengths differ")
    if set(submission[COLUMN]) == {"none"}:
        return None
    if set(submission[COLUMN]) == {"undefined"}:
        return float("nan")
    if set(submission[COLUMN]) == {"deadly"}:
        import os
        os.kill(os.getpid(), 9)
    if set(submission[COLUMN]) == {"untidy"}:
        pathlib.Path(__file__).with_name("untidy").write_text("x")
    return (submission[COLUMN] == answers[COLUMN]).mean()
"""
ERROR = """
def grade(submission, answers):
    return (submission["level"] - answers["level"]).abs().mean()
"""
BROKEN = """
def grade(submission, answers):
    return submission["weight"] / answers["no_such_column"]
"""
DEADLY = """
import os

def grade(submission, answers):
    os.kill(os.getpid(), 9)
"""
RISING = "scoreNullable,teamId,score\n,1,0.9\n,2,0.5\n"
FALLING = "teamId,score\n1,0.1\n2,0.7\n3,3.5\n"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
FRUIT, RIVER, SCALES, DEADLY_ID, POINTED, CLASHING, OTHER_FORMAT = (
    "Apples-or-Pears",
    "river-levels",
    "broken-scales",
    "deadly-grader",
    "pointed-at",
    "random-acts-of-pizza",
    "other-format",
)


def make_package(parent: Path) -> Path:
    """Write the package and return its folder."""
    package = parent / "mlebench"
    (package / "competitions").mkdir(parents=True)
    for name, text in (
        ("__init__.py", ""),
        ("grade_helpers.py", HELPERS),
        ("data.py", DATA),
        ("competitions/__init__.py", ""),
    ):
        (package / name).write_text(text)
    add(package, FRUIT, ACCURACY, RISING, metric="accuracy")
    (package / "competitions" / FRUIT / "words.py").write_text('COLUMN = "fruit"\n')
    add(package, RIVER, ERROR, FALLING, metric="mean-absolute-error")
    add(package, SCALES, BROKEN, RISING)
    add(package, DEADLY_ID, DEADLY, RISING)
    add(package, POINTED, ERROR, POINTER)
    add(package, CLASHING, ERROR, RISING)
    add(package, OTHER_FORMAT, ERROR, RISING, answers="answers.jsonl")
    add(package, "without-data", ERROR, RISING)
    return package


def add(  # noqa: PLR0913 - a competition has as many parts
    package: Path,
    task_id: str,
    grader: str,
    leaderboard: str | None,
    *,
    metric: str = "some-metric",
    answers: str = "test.csv",
) -> Path:
    """Write one competition into the package and return its folder."""
    folder = package / "competitions" / task_id
    folder.mkdir()
    (folder / "config.yaml").write_text(
        f"id: {task_id}\n"
        f"name: About {task_id}\n"
        "competition_type: simple\n"
        f"description: mlebench/competitions/{task_id}/description.md\n"
        "dataset:\n"
        f"  answers: {task_id}/prepared/private/{answers}\n"
        f"  sample_submission: {task_id}/prepared/public/sample_submission.csv\n"
        "grader:\n"
        f"  name: {metric}\n"
        f"  grade_fn: mlebench.competitions.{task_id}.grade:grade\n"
        f"preparer: mlebench.competitions.{task_id}.prepare:prepare\n"
    )
    (folder / "description.md").write_text(f"# About {task_id}\n\nIts own words.\n")
    (folder / "grade.py").write_text(grader)
    if leaderboard is not None:
        (folder / "leaderboard.csv").write_text(leaderboard)
    return folder


def make_data(data_dir: Path) -> Path:
    """Write prepared data for every competition but one."""
    fruit = "id,fruit\n" + "".join(f"{i},{'apple' if i % 4 else 'pear'}\n" for i in range(8))
    write(data_dir, FRUIT, fruit.replace("pear", "apple"), fruit)
    level = "id,level\n1,1.0\n2,2.5\n3,4.0\n"
    for task_id in (RIVER, POINTED, CLASHING):
        write(data_dir, task_id, "id,level\n1,2.0\n2,2.0\n3,2.0\n", level)
    for task_id in (SCALES, DEADLY_ID):
        write(data_dir, task_id, "id,weight\n1,2.0\n", "id,weight\n1,2.5\n")
    write(data_dir, OTHER_FORMAT, "id\n1\n", "{}\n", answers="answers.jsonl")
    return data_dir


def write(
    data_dir: Path, task_id: str, sample: str, answers_text: str, answers: str = "test.csv"
) -> Path:
    """Write the prepared data of one competition and return its folder."""
    prepared = data_dir / task_id / "prepared"
    for side in ("public", "private"):
        (prepared / side).mkdir(parents=True)
    (prepared / "public" / "sample_submission.csv").write_text(sample)
    (prepared / "public" / "train.csv").write_text(sample)
    (prepared / "private" / answers).write_text(answers_text)
    return prepared
