"""The reward of a program without a valid submission: a fixed loss, reduced by milestones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade

_FLAT = frozenset({ErrorKind.NO_CODE, ErrorKind.SYNTAX_ERROR})


def failure_value(execution: Execution, grade: Grade, *, failure: float, milestone: float) -> float:
    """Return `failure` plus `milestone` for each milestone; code that never ran reached none."""
    if grade.failure is not None and grade.failure.kind in _FLAT:
        return failure
    return round(failure + milestone * len(execution.milestones), 10)
