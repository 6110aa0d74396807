"""The progress of a score from the sample submission to a gold medal, from 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from reward_server.model import Reward
from reward_server.reward.failures import failure_value

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade
    from reward_server.reward.base import Scale


@dataclass(frozen=True, slots=True)
class NormalisedScheme:
    """The sample submission's score and worse earn 0, the gold threshold and better earn 1.

    Where gold is unknown, or the sample reaches it, a score earns 1 if it is strictly better than
    the sample's, else 0.
    """

    failure: float = -1.0
    milestone: float = 0.1

    name: ClassVar[str] = "normalised"
    version: ClassVar[int] = 1
    needs_scale: ClassVar[bool] = True

    def reward(self, execution: Execution, grade: Grade, scale: Scale) -> Reward:
        """Return the reward; a better score never earns less."""
        if grade.score is None:
            value = failure_value(execution, grade, failure=self.failure, milestone=self.milestone)
        else:
            value = _progress(grade.score, scale)
        return Reward(value, self.name, self.version)


def _progress(score: float, scale: Scale) -> float:
    baseline, gold = scale.baseline, scale.gold
    if baseline is None or gold is None or not scale.is_better(gold, baseline):
        return float(scale.beats_baseline(score))
    distance = Fraction(gold) - Fraction(baseline)  # exact, so that no difference can overflow
    done = (Fraction(score) - Fraction(baseline)) / distance
    return float(min(max(done, Fraction(0)), Fraction(1)))
