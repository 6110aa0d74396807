"""The share of the original competition's teams that a score beats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reward_server.reward.milestones import MilestoneScheme

if TYPE_CHECKING:
    from reward_server.reward.base import Scale


@dataclass(frozen=True, slots=True)
class PercentileScheme(MilestoneScheme):
    """A score earns the share of teams, 0 to 1, that are strictly worse.

    For a task without a leaderboard it earns 1 if it is strictly better than the sample
    submission's, else 0.
    """

    name: ClassVar[str] = "percentile"

    def valid_value(self, score: float, scale: Scale) -> float:
        """Return the share of teams that the score beats."""
        if scale.ranking is None:
            return float(scale.beats_baseline(score))
        return scale.ranking.share_beaten(score)
