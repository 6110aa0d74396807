"""The phases of grading one submission; the phase of a crash decides whose fault it is."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

Answer = dict[str, Any]


class Phase(StrEnum):
    """A crash in `SUBMISSION` is the program's fault, in `GRADER` a control decides, else ours."""

    ANSWERS = "answers"
    SUBMISSION = "submission"
    GRADER = "grader"
    METRIC = "metric"


Enter = Callable[[Phase], None]
