"""How far the grading of one submission has come, which tells whose fault an end is."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

Answer = dict[str, Any]


class Phase(StrEnum):
    """In `SUBMISSION` an end is the program's fault, in `GRADER` a control tells, else ours."""

    ANSWERS = "answers"
    SUBMISSION = "submission"
    GRADER = "grader"
    METRIC = "metric"


Enter = Callable[[Phase], None]
