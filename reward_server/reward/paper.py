"""The paper's reward: the true score if there is one, else -10 and a little for progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.model import ErrorKind, Reward

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade

_FLAT = frozenset({ErrorKind.NO_CODE, ErrorKind.SYNTAX_ERROR})


@dataclass(frozen=True, slots=True)
class PaperScheme:
    """Without a valid submission -10 plus 0.1 a milestone; with one, its score.

    The score's sign is flipped where lower is better. No valid submission earns less than
    the floor, so that a poor log loss cannot be worse than not running at all.
    """

    failure: float = -10.0
    milestone: float = 0.1
    valid_floor: float | None = -9.0

    def reward(self, execution: Execution, grade: Grade, *, higher_is_better: bool) -> Reward:
        """Return the reward; a better score never earns less."""
        return Reward(self._value(execution, grade, higher_is_better), "paper")

    def _value(self, execution: Execution, grade: Grade, higher_is_better: bool) -> float:  # noqa: FBT001
        if grade.score is not None:
            value = grade.score if higher_is_better else -grade.score
            return value if self.valid_floor is None else max(value, self.valid_floor)
        if grade.failure is not None and grade.failure.kind in _FLAT:
            return self.failure
        return round(self.failure + self.milestone * len(execution.milestones), 10)
