"""The protocol of reward schemes: a pure, total function with finite values.

A better score never earns less, and a failed program earns less than any valid submission. A
scheme has a name and a version, which are stored with every reward; the version increases
whenever the reward of the same program changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade, Reward


class Ranking(Protocol):
    """The teams that a score is compared with."""

    def share_beaten(self, score: float) -> float:
        """Return the share of teams strictly worse, 0 to 1; never less for a better score."""
        ...


@dataclass(frozen=True, slots=True)
class Scale:
    """The facts about a task that a scheme may use.

    `baseline` is the score of the sample submission or a substitute for it, `gold` the threshold
    of a gold medal. Unknown values are None.
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
    """Turns an execution and its grade into the number that a trainer learns from.

    A scheme with `needs_scale` uses more of the scale than the direction.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    needs_scale: ClassVar[bool]

    def reward(self, execution: Execution, grade: Grade, scale: Scale) -> Reward:
        """Return the reward; a better score never earns less."""
        ...
