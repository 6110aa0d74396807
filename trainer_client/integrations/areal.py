"""AReaL: a workflow for programs of any duration, and a reward function for short ones.

    trainer.train(
        workflow="trainer_client.integrations.areal.RewardServerWorkflow",
        workflow_kwargs={"gconfig": config.gconfig, "tokenizer": path, "run_id": "spooky-1"},
    )

A row has `messages`, `task_id` and, for an improve prompt, `parent_id`. The workflow returns None
for a sample without a reward, and AReaL drops it. AReaL's own workflows give a reward function 15
seconds and four attempts, and then use 0 as the reward; `reward_fn` gives up earlier and raises.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Unpack

import torch
from areal import workflow_context
from areal.utils import stats_tracker
from areal.workflow.rlvr import RLVRWorkflow

from trainer_client.client.errors import SampleLostError
from trainer_client.run import Run, RunFields, without_end

if TYPE_CHECKING:
    from areal.api import InferenceEngine
    from areal.api.cli_args import GenerationHyperparameters
    from transformers import PreTrainedTokenizerFast

_FUNCTION_SECONDS = 10.0
_KEPT = "reward_server_measures"


def reward_fn(_prompt: str, completions: str, *_token_ids: object, **row: object) -> float:
    """Score a completion for a row, if that takes only a few seconds.

    Raises:
        RewardServerError: there is no reward.
        ValueError: the row names no task.
    """
    run = Run.from_environment(deadline_seconds=_FUNCTION_SECONDS)
    return run.score_blocking(row, without_end(completions)).answer.reward


class RewardServerWorkflow(RLVRWorkflow):
    """Single-turn rollouts; a trajectory has its `duration_seconds` beside its `rewards`."""

    def __init__(
        self,
        gconfig: GenerationHyperparameters,
        tokenizer: PreTrainedTokenizerFast | str,
        **run: Unpack[RunFields],
    ) -> None:
        super().__init__(f"{__name__}.reward_fn", gconfig, tokenizer)
        self._run = Run.from_environment(**run)
        self.reward_fn = self.async_reward_fn = self._score

    async def arun_episode(
        self, engine: InferenceEngine, data: dict[str, Any]
    ) -> dict[str, torch.Tensor] | None:
        """Return a trajectory, or None without a reward."""
        kept: dict[str, float] = {}
        try:
            trajectory = await super().arun_episode(engine, {**data, _KEPT: kept})
        except SampleLostError as error:
            logging.getLogger(__name__).warning("a sample is dropped: %s", error)
            return None
        return {**trajectory, "duration_seconds": torch.tensor([kept["duration_seconds"]])}

    async def _score(self, *given: Any, **row: Any) -> float:  # noqa: ANN401  # as AReaL calls it
        kept = row.pop(_KEPT)
        written = self.tokenizer.decode(given[3], skip_special_tokens=True)
        scored = await self._run.score(row, written)
        kept.update(scored.numbers())
        stats_tracker.get(workflow_context.stat_scope()).scalar(**kept)
        return scored.answer.reward
