"""The reward of the paper: the score of a valid submission, else -10 plus milestones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reward_server.model import Reward
from reward_server.reward.failures import failure_value

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade
    from reward_server.reward.base import Scale


@dataclass(frozen=True, slots=True)
class PaperScheme:
    """A valid submission earns its score; any other program -10 plus 0.1 per milestone.

    Where lower is better, the sign of the score is flipped. No valid submission earns less than
    the floor, so that a poor log loss is never worse than a failed program.
    """

    failure: float = -10.0
    milestone: float = 0.1
    valid_floor: float | None = -9.0

    name: ClassVar[str] = "paper"
    version: ClassVar[int] = 1
    needs_scale: ClassVar[bool] = False

    def reward(self, execution: Execution, grade: Grade, scale: Scale) -> Reward:
        """Return the reward; a better score never earns less."""
        return Reward(self._value(execution, grade, scale), self.name, self.version)

    def _value(self, execution: Execution, grade: Grade, scale: Scale) -> float:
        if grade.score is None:
            return failure_value(execution, grade, failure=self.failure, milestone=self.milestone)
        value = grade.score if scale.higher_is_better else -grade.score
        return value if self.valid_floor is None else max(value, self.valid_floor)
