"""A taskset for verifiers and prime-rl: the server's prompts and rewards.

    from trainer_client.integrations.verifiers import RewardServerTaskset
    __all__ = ["RewardServerTaskset"]

in a module such as `mle_tasks.py`, whose name verifiers uses (`mle-tasks`). `settings.py` describes
the node `taskset.task.reward_server`. The completion is scored in `finalize`, so that a failure is
an error of the rollout, which is not trained on, and never a reward of 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import verifiers.v1 as vf

from trainer_client.prompting import endless_prompts
from trainer_client.settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEPT = "reward_server"


class RewardServerData(vf.TaskData):
    """A prompt, its task, and the solution to improve on, if any."""

    task_id: str
    parent_id: str | None = None


class RewardServerTaskConfig(vf.TaskConfig):
    """The settings of the run."""

    reward_server: RunSettings | None = None


class RewardServerConfig(vf.TasksetConfig):
    """The settings of the run, and the limit of a prompt."""

    task: RewardServerTaskConfig = RewardServerTaskConfig()
    prompt_characters: int = 16_000


class RewardServerTask(vf.Task[RewardServerData, vf.State, RewardServerTaskConfig]):
    """One prompt. The last reply of the policy is scored."""

    async def finalize(self, trace: vf.Trace) -> None:
        """Score the last reply; raise if there is no reward."""
        run = (self.config.reward_server or RunSettings.read(None)).run()
        scored = await run.score(self.data.model_dump(), trace.last_reply, name=trace.id)
        trace.info[_KEPT] = scored.measures()

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """Return the reward."""
        return float(trace.info[_KEPT]["score"])

    @vf.metric
    async def measures(self, trace: vf.Trace) -> dict[str, float]:
        """Return the metrics to log."""
        return {name: one for name, one in trace.info[_KEPT].items() if isinstance(one, float)}


class RewardServerTaskset(vf.Taskset[RewardServerTask, RewardServerConfig]):
    """The prompts of a run, in turn for each task."""

    INFINITE = True

    def load(self) -> Iterator[RewardServerTask]:
        """Yield prompts without end, and fetch each one when it is needed."""
        settings = self.config.task.reward_server or RunSettings.read(None)
        for task_id, prompt in endless_prompts(settings, self.config.prompt_characters):
            texts = {"prompt": prompt.text("user"), "system_prompt": prompt.text("system")}
            parent_id = prompt.parent_id and str(prompt.parent_id)
            data = RewardServerData(name=task_id, task_id=task_id, parent_id=parent_id, **texts)
            yield RewardServerTask(data, self.config.task)
