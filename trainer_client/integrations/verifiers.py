"""verifiers' tasks, and with them prime-rl's: the server's prompts, and what it makes of answers.

    from trainer_client.integrations.verifiers import RewardServerTaskset
    __all__ = ["RewardServerTaskset"]

in a module, say `mle_tasks.py`, by whose name verifiers finds it (`mle-tasks`). The node
`taskset.task.reward_server` is that of `settings.py`. An answer is scored before verifiers wants
its reward: what goes wrong is an error of the rollout, which is not trained on, never a 0.
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
    """A prompt, its task, and the solution it asks to improve on, if any."""

    task_id: str
    parent_id: str | None = None


class RewardServerTaskConfig(vf.TaskConfig):
    """Where the server is, and what the run is called."""

    reward_server: RunSettings | None = None


class RewardServerConfig(vf.TasksetConfig):
    """What is trained on, and how long a prompt may be."""

    task: RewardServerTaskConfig = RewardServerTaskConfig()
    prompt_characters: int = 16_000


class RewardServerTask(vf.Task[RewardServerData, vf.State, RewardServerTaskConfig]):
    """One prompt; what the policy says last is scored."""

    async def finalize(self, trace: vf.Trace) -> None:
        """Have the answer scored; where there is no reward, this raises."""
        run = (self.config.reward_server or RunSettings.read(None)).run()
        scored = await run.score(self.data.model_dump(), trace.last_reply, name=trace.id)
        trace.info[_KEPT] = scored.measures()

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """Return what the server gave; if it gave nothing, this raises."""
        return float(trace.info[_KEPT]["score"])

    @vf.metric
    async def measures(self, trace: vf.Trace) -> dict[str, float]:
        """Return what is logged."""
        return {name: one for name, one in trace.info[_KEPT].items() if isinstance(one, float)}


class RewardServerTaskset(vf.Taskset[RewardServerTask, RewardServerConfig]):
    """The prompts of a run, of one task after the other."""

    INFINITE = True

    def load(self) -> Iterator[RewardServerTask]:
        """Yield prompts without end, each asked for when it is wanted."""
        settings = self.config.task.reward_server or RunSettings.read(None)
        for task_id, prompt in endless_prompts(settings, self.config.prompt_characters):
            texts = {"prompt": prompt.text("user"), "system_prompt": prompt.text("system")}
            parent_id = prompt.parent_id and str(prompt.parent_id)
            data = RewardServerData(name=task_id, task_id=task_id, parent_id=parent_id, **texts)
            yield RewardServerTask(data, self.config.task)
