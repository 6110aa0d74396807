"""The paper's reward: the true score if there is one, else -10 and a little for progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reward_server.model import Reward
from reward_server.reward.failures import failing_value

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade
    from reward_server.reward.base import Scale


@dataclass(frozen=True, slots=True)
class PaperScheme:
    """Without a valid submission -10 plus 0.1 a milestone; with one, its score.

    The score's sign is flipped where lower is better. No valid submission earns less than
    the floor, so that a poor log loss cannot be worse than not running at all.
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
            return failing_value(execution, grade, failure=self.failure, milestone=self.milestone)
        value = grade.score if scale.higher_is_better else -grade.score
        return value if self.valid_floor is None else max(value, self.valid_floor)
