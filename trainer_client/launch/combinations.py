"""Checks for values that do not fit together in a run with a reward server.

Each check is a generator over the resolved configuration. veRL accepts all of these values, and
then fails late or trains something else than intended.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from trainer_client.integrations.verl.findings import ConfigFinding, at
from trainer_client.launch.table3 import has_critic
from trainer_client.moved import current_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer_client.integrations.verl.findings import Tree

LOGGERS = ("console", "tensorboard", "wandb")
MODES = ("sync", "colocate_async")
_SAMPLER = "trainer.v1.sampler"
_MODE = "trainer.v1.trainer_mode"
_ENV = "ray_kwargs.ray_init.runtime_env.env_vars"
_MODULES = f"{_ENV}.VERL_USE_EXTERNAL_MODULES"
_PLUGIN = "trainer_client.integrations.verl.plugin"


def check_combinations(
    tree: Tree, environment: Mapping[str, str] | None = None
) -> list[ConfigFinding]:
    """Return all findings about a configuration as a whole."""
    given = os.environ if environment is None else environment
    findings: list[ConfigFinding] = []
    for check in _CHECKS:
        with contextlib.suppress(TypeError):  # another check has reported a value of the wrong type
            findings += check(tree)
    return [*findings, *_check_loggers(tree, given), *_check_cluster(tree, given)]


def _check_mode(tree: Tree) -> Iterator[ConfigFinding]:
    mode = at(tree, _MODE)
    if at(tree, "trainer.use_v1") is not True:
        yield ConfigFinding("trainer.use_v1", "must be true: the old trainer knows no durations")
    if mode not in MODES:
        yield ConfigFinding(
            _MODE, f"must be {' or '.join(MODES)}: {mode} is not weighted by durations"
        )
    elif mode == "sync":
        yield from _check_sync(tree)
    else:
        yield from _check_async(tree)


def _check_sync(tree: Tree) -> Iterator[ConfigFinding]:
    if at(tree, f"{_SAMPLER}.custom_sampler.path"):
        text = "is for colocate_async alone: leave it empty, or use --mode colocate_async"
        yield ConfigFinding(f"{_SAMPLER}.custom_sampler.path", text)
    if at(tree, f"{_SAMPLER}.sync_refill_failed_groups") is not True:
        text = "must be true in sync mode: a batch that is lost as a whole would end the run"
        yield ConfigFinding(f"{_SAMPLER}.sync_refill_failed_groups", text)


def _check_async(tree: Tree) -> Iterator[ConfigFinding]:
    warm = at(tree, "trainer.v1.colocate_async.num_warmup_batches")
    if not isinstance(warm, (int, float)) or warm <= 0:
        text = "must be above 0: it is m - 1, and with m = 1 every step waits for its slowest"
        yield ConfigFinding("trainer.v1.colocate_async.num_warmup_batches", text)
    threshold = at(tree, f"{_SAMPLER}.max_off_policy_threshold")
    if isinstance(threshold, int) and threshold < 1:
        yield ConfigFinding(f"{_SAMPLER}.max_off_policy_threshold", "must be at least 1")
    sampler = at(tree, f"{_SAMPLER}.custom_sampler.name")
    if not sampler:
        text = "without CancellingReplayBuffer, programs of dropped samples run to their end"
        yield ConfigFinding(f"{_SAMPLER}.custom_sampler.name", text, "hint")
    if sampler and at(tree, "algorithm.filter_groups.enable"):
        yield ConfigFinding(
            "algorithm.filter_groups.enable", "a custom sampler does not get to know it"
        )


def _check_data(tree: Tree) -> Iterator[ConfigFinding]:
    name = at(tree, "data.custom_cls.name")
    if name != "TaskDataset":
        text = "is not TaskDataset: prompts, and what is sent for scoring, are yours to make"
        yield ConfigFinding("data.custom_cls.name", text, "hint")
        return
    if at(tree, "data.dataloader_num_workers") != 0:
        text = "must be 0: other processes would draw prompts many steps ahead of their use"
        yield ConfigFinding("data.dataloader_num_workers", text)
    for key, word in (("data.train_files", "train"), ("data.val_files", "validation")):
        if at(tree, key) not in (word, [word]):
            yield ConfigFinding(key, f"must be the word {word}: TaskDataset reads no files")
    if at(tree, "data.reward_server") is None:
        yield ConfigFinding(
            "data.reward_server", "must be ${reward_server}: the data set sees no more"
        )


def _check_lengths(tree: Tree) -> Iterator[ConfigFinding]:
    for rollout, data in (("prompt", "max_prompt"), ("response", "max_response")):
        key, other = f"actor_rollout_ref.rollout.{rollout}_length", f"data.{data}_length"
        if at(tree, key) != at(tree, other):
            yield ConfigFinding(key, f"must be the same as {other}, {at(tree, other)}")
    most = at(tree, "actor_rollout_ref.rollout.max_model_len")
    needed = at(tree, "data.max_prompt_length", 0) + at(tree, "data.max_response_length", 0)
    if most is not None and most < needed:
        text = f"must be at least {needed}, prompt and response together"
        yield ConfigFinding("actor_rollout_ref.rollout.max_model_len", text)


def _check_sizes(tree: Tree) -> Iterator[ConfigFinding]:
    batch, gpus = at(tree, "data.train_batch_size"), _gpus(tree)
    rows = at(tree, "reward_server.prompts.epoch_rows", 128)
    if isinstance(rows, int) and rows < batch:
        text = f"must be at least data.train_batch_size, {batch}: an epoch would have no step"
        yield ConfigFinding("reward_server.prompts.epoch_rows", text)
    samples = at(tree, "actor_rollout_ref.rollout.n", 1)
    pairs = [("actor_rollout_ref.actor", "ppo_micro_batch_size_per_gpu")]
    pairs += [("critic", "fsdp.micro_batch_size_per_gpu")] if has_critic(tree) else []
    for part, micro_key in pairs:
        mini, micro = at(tree, f"{part}.ppo_mini_batch_size"), at(tree, f"{part}.{micro_key}")
        if not mini or batch % mini:
            text = f"must divide data.train_batch_size, {batch}"
            yield ConfigFinding(f"{part}.ppo_mini_batch_size", text)
        elif micro and (mini * samples) % (micro * gpus):
            text = f"{micro} on each of {gpus} GPUs must divide a mini batch of {mini * samples}"
            yield ConfigFinding(f"{part}.{micro_key}", text)


def _check_parallel(tree: Tree) -> Iterator[ConfigFinding]:
    key = "actor_rollout_ref.rollout.tensor_model_parallel_size"
    if not at(tree, key) or _gpus(tree) % at(tree, key):
        yield ConfigFinding(key, f"must divide the number of GPUs, {_gpus(tree)}")


def _check_algorithm(tree: Tree) -> Iterator[ConfigFinding]:
    if at(tree, "algorithm.kl_ctrl.kl_coef") and not at(tree, "algorithm.use_kl_in_reward"):
        text = "acts on nothing unless algorithm.use_kl_in_reward is true; set it to 0 without"
        yield ConfigFinding("algorithm.kl_ctrl.kl_coef", text)
    estimator = at(tree, "algorithm.adv_estimator")
    if estimator == "grpo" and at(tree, "actor_rollout_ref.rollout.n", 1) < 2:
        yield ConfigFinding(
            "actor_rollout_ref.rollout.n", "must be at least 2: grpo compares a group"
        )
    if has_critic(tree) and at(tree, "critic.fsdp.use_dynamic_bsz", default=True):
        text = (
            "unless false, the critic's micro batches are critic.ppo_infer_max_token_len_per_gpu "
            f"tokens, {at(tree, 'critic.ppo_infer_max_token_len_per_gpu', 32768)}, however its "
            "batch sizes are set"
        )
        yield ConfigFinding("critic.fsdp.use_dynamic_bsz", text, "hint")


def _check_steps(tree: Tree) -> Iterator[ConfigFinding]:
    rows, batch = (
        at(tree, "reward_server.prompts.epoch_rows", 128),
        at(tree, "data.train_batch_size"),
    )
    steps, epochs = at(tree, "trainer.total_training_steps"), at(tree, "trainer.total_epochs")
    if steps and rows >= batch and steps > epochs * (rows // batch):
        text = f"the run would end after {epochs * (rows // batch)} steps, with its last epoch"
        yield ConfigFinding("trainer.total_training_steps", f"{text}: raise trainer.total_epochs")
    if at(tree, "trainer.save_freq", -1) < 1:
        yield ConfigFinding("trainer.save_freq", "no checkpoints: a crash begins at step 1", "hint")


def _check_reward(tree: Tree) -> Iterator[ConfigFinding]:
    manager = at(tree, "reward.reward_manager.name")
    if manager != "RewardServerManager":
        text = "is not RewardServerManager: durations must come from elsewhere"
        yield ConfigFinding("reward.reward_manager.name", text, "hint")
    elif at(tree, "reward.reward_manager.source") != "importlib":
        text = "must be importlib: veRL knows none of this name"
        yield ConfigFinding("reward.reward_manager.source", text)
    workers = at(tree, "reward.num_workers", 0)
    if workers < 1:
        yield ConfigFinding("reward.num_workers", "must be at least 1")
    if workers > 8:
        text = "one is enough for thousands of samples, and each holds a dozen connections"
        yield ConfigFinding("reward.num_workers", text, "hint")


def _check_plugin(tree: Tree) -> Iterator[ConfigFinding]:
    modules = [current_path(name) for name in str(at(tree, _MODULES) or "").split(",")]
    if at(tree, "reward_server.durations.enabled", default=True) and _PLUGIN not in modules:
        text = f"must name {_PLUGIN}, or reward_server.durations.enabled be false"
        yield ConfigFinding(_MODULES, text)
    for name in at(tree, _ENV) or {}:
        if any(word in name for word in ("API_KEY", "TOKEN", "SECRET", "PASSWORD")):
            text = "would be written to every log: set it in the environment instead"
            yield ConfigFinding(f"{_ENV}.{name}", text)


def _check_loggers(tree: Tree, environment: Mapping[str, str]) -> Iterator[ConfigFinding]:
    loggers = at(tree, "trainer.logger")
    names = [loggers] if isinstance(loggers, str) else loggers or []
    for name in names:
        if name not in LOGGERS:
            yield ConfigFinding("trainer.logger", f"{name!r} is none of {', '.join(LOGGERS)}")
    is_offline = environment.get("WANDB_MODE") in ("offline", "disabled")
    if "wandb" in names and "WANDB_API_KEY" not in environment and not is_offline:
        text = "wandb needs WANDB_API_KEY (or `wandb login`), or WANDB_MODE=offline"
        yield ConfigFinding("trainer.logger", text, "hint")


def _check_cluster(tree: Tree, environment: Mapping[str, str]) -> Iterator[ConfigFinding]:
    address = at(tree, "ray_kwargs.ray_init.address") or environment.get("RAY_ADDRESS")
    if address:
        text = (
            f"a Ray cluster that runs already ({address}) does not get this environment: start it "
            "with REWARD_SERVER_API_KEY set, and this package installed, on every node"
        )
        yield ConfigFinding("ray_kwargs.ray_init.address", text, "hint")


def _gpus(tree: Tree) -> Any:  # noqa: ANN401 - checked to be a number before
    return at(tree, "trainer.nnodes", 1) * at(tree, "trainer.n_gpus_per_node", 1)


_CHECKS = (
    _check_mode,
    _check_data,
    _check_lengths,
    _check_sizes,
    _check_parallel,
    _check_algorithm,
    _check_steps,
    _check_reward,
    _check_plugin,
)
