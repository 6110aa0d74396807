"""A single-turn environment for SkyRL.

    from skyrl_gym.envs import register

    register(
        id="reward-server",
        entry_point="trainer_client.integrations.skyrl:RewardServerEnv",
        kwargs={"url": "http://10.0.0.5:8000", "run_id": "spooky-1"},
    )

A row names its task in the column `task_id`, and for an improve prompt the earlier solution in
`parent_id`. SkyRL cannot drop a sample: without a reward, `step` raises and ends the training.
SkyRL passes neither a step nor a sample id, so every call is a new job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from trainer_client.run import Run, RunFields

if TYPE_CHECKING:
    from collections.abc import Mapping


class RewardServerEnv(BaseTextEnv):
    """Scores completions, in any of SkyRL's threads.

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
        self._run.submission(self._row, "")  # fail before generation if the row has no task

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Return the reward. The episode ends after one turn.

        Raises:
            RewardServerError: there is no reward.
        """
        self.turns += 1
        scored = self._run.score_blocking(self._row, action)
        self._measures = scored.measures()
        return BaseTextEnvStepOutput(
            observations=[], reward=scored.answer.reward, done=True, metadata=dict(self._measures)
        )

    def get_metrics(self) -> dict[str, float | str]:
        """Return the metrics that SkyRL averages and logs."""
        return dict(self._measures)
