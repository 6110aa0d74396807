"""SkyRL's environment: one answer, one program, one reward.

    from skyrl_gym.envs import register

    register(
        id="reward-server",
        entry_point="trainer_client.integrations.skyrl:RewardServerEnv",
        kwargs={"url": "http://10.0.0.5:8000", "run_id": "spooky-1"},
    )

A row names its task (`task_id`) and, if its prompt asks to improve on a solution, that solution
(`parent_id`), in columns of its own. SkyRL has no way to drop a sample: where there is no reward,
`step` raises, and that ends the training. It names neither step nor sample, so that every call is
a job of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from trainer_client.run import Run, RunFields

if TYPE_CHECKING:
    from collections.abc import Mapping


class RewardServerEnv(BaseTextEnv):
    """Has what the policy wrote scored, whichever of SkyRL's threads it runs in.

    Raises:
        ValueError: the row names no task.
    """

    def __init__(
        self,
        env_config: object = None,  # noqa: ARG002  # SkyRL passes it by name
        extras: Mapping[str, Any] | None = None,
        **run: Unpack[RunFields],
    ) -> None:
        super().__init__()
        self._run = Run.from_environment(**run)
        self._row = extras or {}
        self._measures: dict[str, float | str] = {}
        self._run.submission(self._row, "")  # a row without a task is told before it costs tokens

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Return the reward; there is no second turn.

        Raises:
            RewardServerError: there is none.
        """
        self.turns += 1
        scored = self._run.score_blocking(self._row, action)
        self._measures = scored.measures()
        return BaseTextEnvStepOutput(
            observations=[], reward=scored.answer.reward, done=True, metadata=dict(self._measures)
        )

    def get_metrics(self) -> dict[str, float | str]:
        """Return what SkyRL logs the means of."""
        return dict(self._measures)
