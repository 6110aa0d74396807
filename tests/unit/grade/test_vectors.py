"""Scores agree with MLE-bench's own graders on every recorded case."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from reward_server.grade.process import GradedCase, grade_cases
from reward_server.tasks.folders import find_folders

OURS = Path(__file__).parents[2] / "data" / "vectors"
DIRECTORIES = [OURS, *(Path(extra) for extra in [os.environ.get("VECTORS_DIR")] if extra)]
KNOWN = find_folders()


def expected_cases() -> list[tuple[Path, Path, dict[str, Any]]]:
    found = [
        (directory, path.parent, json.loads(path.read_text()))
        for directory in DIRECTORIES
        for path in sorted(directory.rglob("expected.json"))
    ]
    return [case for case in found if case[2].get("task", case[1].parent.name) in KNOWN]


@pytest.fixture(scope="module")
def graded() -> dict[Path, GradedCase]:
    return {
        directory / case["path"]: case
        for directory in DIRECTORIES
        for case in grade_cases(directory, find_folders())
    }


@pytest.mark.parametrize(
    ("case", "expected"),
    [pytest.param(case, about, id=str(case.relative_to(d))) for d, case, about in expected_cases()],
)
def test_a_case_has_the_validity_and_score_that_mle_bench_gave(
    case: Path, expected: dict[str, Any], graded: dict[Path, GradedCase]
) -> None:
    if expected.get("order_dependent"):
        pytest.skip("the reference depends on an unstable sort")
    was_taken = expected["report"]["submission_exists"]
    reference = float(expected["raw_score"]) if was_taken and "raw_score" in expected else math.nan
    assert graded[case]["valid"] == math.isfinite(reference)
    if math.isfinite(reference):
        assert graded[case]["score"] == pytest.approx(reference, abs=1e-9, rel=0)


def test_there_are_cases_of_every_built_in_task() -> None:
    assert {case.parent.name for _, case, _ in expected_cases()} >= set(KNOWN)


def test_a_case_without_a_submission_is_invalid(tmp_path: Path) -> None:
    case = tmp_path / "random-acts-of-pizza" / "case-00-no-file"
    case.mkdir(parents=True)
    (case / "expected.json").write_text('{"outcome": "no_submission"}')
    (case / "answers.csv").write_text("request_id,requester_received_pizza\na,1\nb,0\n")
    graded = list(grade_cases(tmp_path, find_folders()))
    assert graded == [
        {"path": "random-acts-of-pizza/case-00-no-file", "valid": False, "score": None}
    ]
