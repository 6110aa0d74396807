"""Keys that veRL 0.9.1 takes and then ignores, each with what to write instead.

They are in its configuration, so Hydra accepts them, and nothing of the V1 trainer reads them: a
run goes on as if they had not been said. What veRL refuses by itself is not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer_client.integrations.verl.findings import ConfigFinding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ACTOR = "actor_rollout_ref.actor"
_ROLLOUT = "actor_rollout_ref.rollout"
_REF = "actor_rollout_ref.ref"


@dataclass(frozen=True, slots=True)
class DeadKey:
    """A key, or all below it, that nothing reads.

    It may stand beside `twins` of the same value, and is dead `only` where that key has that value.
    """

    key: str
    instead: str
    twins: tuple[str, ...] = ()
    only: tuple[str, str] | None = None

    def covers(self, key: str) -> bool:
        """Tell whether this is about a key."""
        return key == self.key or key.startswith(f"{self.key}.")


_OUR_PROMPTS = ("data.custom_cls.name", "TaskDataset")
_OUR_REWARDS = ("reward.reward_manager.name", "RewardServerManager")
_FROM_SERVER = "prompts come from the reward server: leave it out, see reward_server.prompts"
_MANAGED = "rewards come from RewardServerManager: leave it out, see reward_server"

DEAD_KEYS = (
    DeadKey("custom_reward_function", "the group moved: write reward.custom_reward_function"),
    DeadKey("reward_model", "the group moved: write reward.reward_model or reward.reward_manager"),
    DeadKey("sandbox_fusion", "the group moved: write reward.sandbox_fusion"),
    DeadKey("reward.custom_reward_function", _MANAGED, only=_OUR_REWARDS),
    DeadKey("reward.sandbox_fusion", _MANAGED, only=_OUR_REWARDS),
    DeadKey("reward.reward_manager.module.name", "the class is reward.reward_manager.name"),
    DeadKey(
        f"{_ACTOR}.grad_clip",
        f"write {_ACTOR}.optim.clip_grad, which is what the engine reads",
        (f"{_ACTOR}.optim.clip_grad",),
    ),
    DeadKey(
        "critic.grad_clip",
        "write critic.optim.clip_grad, which is what the engine reads",
        ("critic.optim.clip_grad",),
    ),
    DeadKey(
        f"{_ACTOR}.clip_ratio",
        f"set {_ACTOR}.clip_ratio_low and clip_ratio_high to the same value: they win over it",
        (f"{_ACTOR}.clip_ratio_low", f"{_ACTOR}.clip_ratio_high"),
    ),
    DeadKey(f"{_ACTOR}.ppo_micro_batch_size", f"write {_ACTOR}.ppo_micro_batch_size_per_gpu"),
    DeadKey(f"{_ACTOR}.use_torch_compile", f"write {_ACTOR}.fsdp_config.use_torch_compile"),
    DeadKey(f"{_ACTOR}.freeze_vision_tower", "nothing reads it: leave it out"),
    DeadKey(f"{_ACTOR}.optim.warmup_style", f"write {_ACTOR}.optim.lr_scheduler_type"),
    DeadKey(f"{_REF}.log_prob_micro_batch_size", f"write {_REF}.log_prob_micro_batch_size_per_gpu"),
    DeadKey(f"{_REF}.use_torch_compile", f"write {_REF}.fsdp_config.use_torch_compile"),
    DeadKey(
        f"{_ROLLOUT}.log_prob_micro_batch_size",
        f"write {_ROLLOUT}.log_prob_micro_batch_size_per_gpu",
    ),
    DeadKey(
        f"{_ROLLOUT}.over_sample_rate",
        "write trainer.v1.colocate_async.num_warmup_batches: m - 1 for m times the batch",
    ),
    DeadKey(f"{_ROLLOUT}.do_sample", f"write {_ROLLOUT}.temperature: 0 is greedy"),
    DeadKey(f"{_ROLLOUT}.multi_stage_wake_up", "nothing reads it: leave it out"),
    DeadKey(f"{_ROLLOUT}.multi_turn.num_repeat_rollouts", f"write {_ROLLOUT}.n"),
    DeadKey("actor_rollout_ref.nccl_timeout", "nothing reads it: leave it out"),
    DeadKey("critic.ppo_micro_batch_size", "write critic.fsdp.micro_batch_size_per_gpu"),
    DeadKey(
        "critic.ppo_micro_batch_size_per_gpu",
        "write critic.fsdp.use_dynamic_bsz: false and critic.fsdp.micro_batch_size_per_gpu",
        ("critic.fsdp.micro_batch_size_per_gpu",),
    ),
    DeadKey(
        "critic.forward_micro_batch_size",
        "write critic.fsdp.infer_micro_batch_size_per_gpu",
    ),
    DeadKey(
        "critic.forward_micro_batch_size_per_gpu",
        "write critic.fsdp.infer_micro_batch_size_per_gpu",
    ),
    DeadKey("critic.use_dynamic_bsz", "write critic.fsdp.use_dynamic_bsz"),
    DeadKey("critic.ppo_max_token_len_per_gpu", "write critic.ppo_infer_max_token_len_per_gpu"),
    DeadKey("critic.forward_max_token_len_per_gpu", "write critic.ppo_infer_max_token_len_per_gpu"),
    DeadKey(
        "critic.ulysses_sequence_parallel_size",
        "write critic.fsdp.ulysses_sequence_parallel_size",
    ),
    DeadKey("critic.optim.warmup_style", "write critic.optim.lr_scheduler_type"),
    DeadKey("algorithm.use_pf_ppo", "the V1 trainer has none of it: leave it out"),
    DeadKey("algorithm.pf_ppo", "the V1 trainer has none of it: leave it out"),
    DeadKey(
        "algorithm.filter_groups.max_num_gen_batches",
        "write algorithm.filter_groups.max_inflight_gen_batches",
    ),
    DeadKey("trainer.balance_batch", "batches are always balanced: leave it out"),
    DeadKey("trainer.esi_redundant_time", "nothing reads it: write trainer.save_freq"),
    DeadKey("trainer.v1.sync", "nothing reads what stands below it: leave it out"),
    DeadKey(
        "data.gen_batch_size",
        "it becomes 1 in colocate_async, and wherever failed groups are replaced: leave it out",
    ),
    DeadKey("data.tokenizer", "the model's own is used: actor_rollout_ref.model.tokenizer_path"),
    DeadKey("data.trust_remote_code", "write actor_rollout_ref.model.trust_remote_code"),
    DeadKey("data.use_shm", "write actor_rollout_ref.model.use_shm"),
    DeadKey("data.reward_fn_key", _FROM_SERVER, only=_OUR_PROMPTS),
    DeadKey("data.prompt_key", _FROM_SERVER, only=_OUR_PROMPTS),
    DeadKey("data.truncation", _FROM_SERVER, only=_OUR_PROMPTS),
    DeadKey("data.filter_overlong_prompts", _FROM_SERVER, only=_OUR_PROMPTS),
    DeadKey("data.filter_overlong_prompts_workers", _FROM_SERVER, only=_OUR_PROMPTS),
    DeadKey("data.return_raw_chat", _FROM_SERVER, only=_OUR_PROMPTS),
    DeadKey("data.return_raw_input_ids", _FROM_SERVER, only=_OUR_PROMPTS),
    DeadKey("data.return_full_prompt", _FROM_SERVER, only=_OUR_PROMPTS),
    DeadKey("data.return_multi_modal_inputs", _FROM_SERVER, only=_OUR_PROMPTS),
)


def find_dead(asked: Mapping[str, Any]) -> Iterator[ConfigFinding]:
    """Yield what was asked for and would be ignored; null says nothing, so nothing is lost."""
    for key, value in asked.items():
        for dead in DEAD_KEYS:
            if dead.covers(key) and value is not None and not _is_fine(dead, value, asked):
                yield ConfigFinding(key, f"veRL takes this and ignores it; {dead.instead}")


def _is_fine(dead: DeadKey, value: object, asked: Mapping[str, Any]) -> bool:
    if dead.only is not None and asked.get(dead.only[0]) != dead.only[1]:
        return True
    return bool(dead.twins) and all(asked.get(twin) == value for twin in dead.twins)
