"""What a reward scheme promises: a pure, total function with finite values.

The better a score, the more it earns, or as much; and a program that fails earns less than any
valid submission. A scheme has a name, and a version that grows when the same program would earn
something else than before; both are kept with every reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade, Reward


class Ranking(Protocol):
    """The teams that a score is measured against."""

    def share_beaten(self, score: float) -> float:
        """Return the share of teams strictly worse, 0 to 1; never less for a better score."""
        ...


@dataclass(frozen=True, slots=True)
class Scale:
    """What a scheme may know of a task.

    `baseline` is the score of the sample submission or what stands in for it, `gold` the score
    that won a gold medal. What is not known is None.
    """

    higher_is_better: bool
    baseline: float | None = None
    gold: float | None = None
    ranking: Ranking | None = None

    def is_better(self, score: float, other: float) -> bool:
        """Tell whether one score is strictly better than another."""
        return score > other if self.higher_is_better else score < other

    def beats_baseline(self, score: float) -> bool:
        """Tell whether a score is strictly better than the baseline, where there is one."""
        return self.baseline is not None and self.is_better(score, self.baseline)


class Scheme(Protocol):
    """Turns what a program did into the number a trainer learns from.

    A scheme that needs a scale uses more of it than the direction.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    needs_scale: ClassVar[bool]

    def reward(self, execution: Execution, grade: Grade, scale: Scale) -> Reward:
        """Return the reward; a better score never earns less."""
        ...
