"""The share of the original competition's teams that a score beats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reward_server.model import Reward
from reward_server.reward.failures import failure_value

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade
    from reward_server.reward.base import Scale


@dataclass(frozen=True, slots=True)
class PercentileScheme:
    """A score earns the share of teams, 0 to 1, that are strictly worse.

    For a task without a leaderboard it earns 1 if it is strictly better than the sample
    submission's, else 0.
    """

    failure: float = -1.0
    milestone: float = 0.1

    name: ClassVar[str] = "percentile"
    version: ClassVar[int] = 1
    needs_scale: ClassVar[bool] = True

    def reward(self, execution: Execution, grade: Grade, scale: Scale) -> Reward:
        """Return the reward; a better score never earns less."""
        if grade.score is None:
            value = failure_value(execution, grade, failure=self.failure, milestone=self.milestone)
        elif scale.ranking is None:
            value = float(scale.beats_baseline(grade.score))
        else:
            value = scale.ranking.share_beaten(grade.score)
        return Reward(value, self.name, self.version)
