"""One submission, one score: what happens inside the grading process after the fork.

The phases tell whose fault an end is: in `SUBMISSION` it is the program's, in every other
phase it is ours. Importing this module loads pandas and scikit-learn, once, before any fork.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from reward_server.grade import metrics
from reward_server.grade.table import Caps, read_table
from reward_server.tasks.modules import load_module
from reward_server.tasks.tables import parse_csv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Answer = dict[str, Any]


class Phase(StrEnum):
    """How far the grading of one submission has come."""

    ANSWERS = "answers"
    SUBMISSION = "submission"
    METRIC = "metric"


def warm_up() -> None:
    """Touch what every grading uses, so that forks inherit it ready."""
    table = parse_csv(b"id,target\na,0.5\nb,1\n")
    table.sort_values("id")
    metrics.roc_auc(np.array([0.0, 1.0]), table["target"].to_numpy(np.float64))


def score_submission(
    folder: Path, answers: Path, submission: bytes, file_bytes: int, enter: Callable[[Phase], None]
) -> Answer:
    """Grade the bytes against the answers, announcing each phase before it begins."""
    enter(Phase.ANSWERS)
    task = load_module(folder / "grade.py", "align", "score")
    raw_answers = answers.read_bytes()
    caps, expected = Caps.beside(raw_answers, file_bytes), parse_csv(raw_answers)
    enter(Phase.SUBMISSION)
    try:
        truth, prediction = task.align(read_table(submission, caps), expected)
    except Exception:  # noqa: BLE001 -- whatever a submission causes here is the program's fault
        return {"outcome": "invalid"}
    enter(Phase.METRIC)
    score = float(task.score(truth, prediction))
    return {"outcome": "score", "score": score} if math.isfinite(score) else {"outcome": "invalid"}
