"""What all schemes share: a failed program earns a fixed loss, reduced by milestones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reward_server.model import ErrorKind, Reward

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade
    from reward_server.reward.base import Scale

_FLAT = frozenset({ErrorKind.NO_CODE, ErrorKind.SYNTAX_ERROR})


@dataclass(frozen=True, slots=True)
class MilestoneScheme(ABC):
    """Without a valid submission, `failure` plus `milestone` for each milestone.

    Code that never ran reached none.
    """

    failure: float = -1.0
    milestone: float = 0.1

    name: ClassVar[str]
    version: ClassVar[int] = 1
    needs_scale: ClassVar[bool] = True

    def reward(self, execution: Execution, grade: Grade, scale: Scale) -> Reward:
        """Return the reward; a better score never earns less."""
        if grade.score is not None:
            value = self.valid_value(grade.score, scale)
        elif grade.failure is not None and grade.failure.kind in _FLAT:
            value = self.failure
        else:
            value = round(self.failure + self.milestone * len(execution.milestones), 10)
        return Reward(value, self.name, self.version)

    @abstractmethod
    def valid_value(self, score: float, scale: Scale) -> float:
        """Return what a valid submission earns."""
