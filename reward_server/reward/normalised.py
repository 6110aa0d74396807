"""The progress of a score from the sample submission to a gold medal, from 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from reward_server.reward.milestones import MilestoneScheme

if TYPE_CHECKING:
    from reward_server.reward.base import Scale


@dataclass(frozen=True, slots=True)
class NormalisedScheme(MilestoneScheme):
    """The sample submission's score and worse earn 0, the gold threshold and better earn 1.

    Where gold is unknown, or the sample reaches it, a score earns 1 if it is strictly better than
    the sample's, else 0.
    """

    name: ClassVar[str] = "normalised"

    def valid_value(self, score: float, scale: Scale) -> float:
        """Return the progress, from 0 to 1."""
        baseline, gold = scale.baseline, scale.gold
        if baseline is None or gold is None or not scale.is_better(gold, baseline):
            return float(scale.beats_baseline(score))
        distance = Fraction(gold) - Fraction(baseline)  # exact, so that no difference can overflow
        done = (Fraction(score) - Fraction(baseline)) / distance
        return float(min(max(done, Fraction(0)), Fraction(1)))
