"""A reward manager for veRL: scores every sample under its own idempotency key.

    reward.reward_manager.source=importlib
    reward.reward_manager.name=RewardServerManager
    reward.reward_manager.module.path=pkg://trainer_client.integrations.verl.manager

veRL calls `run_single` for each sample right after generation, in a few asynchronous Ray actors:
hundreds of samples wait in each without a thread. veRL has no deadline here, so the client applies
`reward_server.deadline_seconds`. Without a reward `run_single` raises, and veRL drops the sample.
Depending on its settings it then uses another prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from trainer_client.integrations.verl.registration import check_registered
from trainer_client.settings import NODE, RunSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from omegaconf import DictConfig
    from transformers import PreTrainedTokenizerBase
    from verl import DataProto

    from trainer_client.measures import ScoredSample


class RewardServerManager(RewardManagerBase):
    """Scores completions."""

    def __init__(
        self,
        config: DictConfig,
        tokenizer: PreTrainedTokenizerBase,
        compute_score: Callable[..., object] | None = None,
        **_router: object,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)
        self._settings = RunSettings.read(config.get(NODE))
        if self._settings.durations.enabled:
            check_registered(config.trainer.v1.trainer_mode)
        self._run = self._settings.run()

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """Score one sample. The last sequence of a session is its completion.

        Raises:
            RewardServerError: there is no reward.
        """
        scored = await self._score(data[-1:][0])
        return {"reward_score": scored.answer.reward, "reward_extra_info": scored.measures()}

    async def _score(self, item: DataProto) -> ScoredSample:
        """Score a sample under its prompt's uid and the number of its rollout."""
        fields = item.non_tensor_batch
        extra = fields.get("extra_info") or {}
        responses = item.batch["responses"]
        length = int(item.batch["attention_mask"][-responses.shape[-1] :].sum())
        row = {
            "task_id": str(fields["data_source"]),
            "parent_id": extra.get("parent_id"),
            "is_validation": extra.get("is_validation", False),
        }
        return await self._run.score(
            row,
            self.tokenizer.decode(responses[:length], skip_special_tokens=True),
            step=int(fields["global_steps"]),
            name=f"{fields['uid']}/{int(fields['session_id'])}",
        )
