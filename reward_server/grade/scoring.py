"""One submission, one score: what happens inside the grading process after the fork.

Importing this module loads pandas and scikit-learn, once, before any fork. Competitions of
MLE-bench are graded by `competition`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from reward_server.grade.competition import score_competition, score_control
from reward_server.grade.phases import Phase
from reward_server.tasks.sdk import metrics
from reward_server.tasks.sdk.competition import is_competition
from reward_server.tasks.sdk.modules import load_module
from reward_server.tasks.sdk.submission_table import Caps, read_table
from reward_server.tasks.sdk.tables import parse_csv

if TYPE_CHECKING:
    from pathlib import Path

    from reward_server.grade.phases import Answer, Enter

__all__ = ["score_control", "score_submission", "warm_up"]


def warm_up() -> None:
    """Touch what every grading uses, so that forks inherit it ready."""
    table = parse_csv(b"id,target\na,0.5\nb,1\n")
    table.sort_values("id")
    metrics.roc_auc(np.array([0.0, 1.0]), table["target"].to_numpy(np.float64))


def score_submission(
    folder: Path, answers: Path, submission: bytes, file_bytes: int, enter: Enter
) -> Answer:
    """Grade the bytes against the answers, announcing each phase before it begins."""
    if is_competition(folder):
        return score_competition(folder, answers, submission, file_bytes, enter)
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
