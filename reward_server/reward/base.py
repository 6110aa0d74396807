"""What a reward scheme promises: a pure, total function with finite values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from reward_server.model import Execution, Grade, Reward


class Scheme(Protocol):
    """Turns what a program did into the number a trainer learns from."""

    def reward(self, execution: Execution, grade: Grade, *, higher_is_better: bool) -> Reward:
        """Return the reward; a better score never earns less."""
        ...
