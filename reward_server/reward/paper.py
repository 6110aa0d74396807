"""The reward of the paper: the score of a valid submission, else -10 plus milestones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from reward_server.reward.milestones import MilestoneScheme

if TYPE_CHECKING:
    from reward_server.reward.base import Scale


@dataclass(frozen=True, slots=True)
class PaperScheme(MilestoneScheme):
    """A valid submission earns its score; any other program -10 plus 0.1 per milestone.

    Where lower is better, the sign of the score is flipped. No valid submission earns less than
    the floor, so that a poor log loss is never worse than a failed program.
    """

    failure: float = -10.0
    valid_floor: float | None = -9.0

    name: ClassVar[str] = "paper"
    needs_scale: ClassVar[bool] = False

    def valid_value(self, score: float, scale: Scale) -> float:
        """Return the score, signed so that more is better, or the floor."""
        value = score if scale.higher_is_better else -score
        return value if self.valid_floor is None else max(value, self.valid_floor)
