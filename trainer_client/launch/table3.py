"""The paper's Table 3 (arXiv 2509.01684) as data, and its comparison with a run.

The table uses the names of an older veRL. Each row lists the current keys of the same meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer_client.integrations.verl.findings import at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_client.integrations.verl.findings import Tree

_ACTOR = "actor_rollout_ref.actor"
_ROLLOUT = "actor_rollout_ref.rollout"
_MODEL = "actor_rollout_ref.model"
_ALL_GPUS = "the paper's is for all GPUs together, veRL's for each"
_CRITIC_MICRO = f"{_ALL_GPUS}, and is read below critic.fsdp alone"


@dataclass(frozen=True, slots=True)
class Table3Row:
    """One row of the table, with the current keys of the paper's name.

    `is_global` values are divided among the GPUs. `must` are keys without which the others have no
    effect.
    """

    name: str
    value: object
    keys: tuple[str, ...]
    note: str = ""
    is_global: bool = False
    must: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row of the table beside a run's value. `is_same` is None where the paper gives none."""

    row: Table3Row
    found: str
    is_same: bool | None


def _micro(name: str, key: str, note: str = _ALL_GPUS, *must: tuple[str, object]) -> Table3Row:
    return Table3Row(name, 8, (key,), note, is_global=True, must=must)


_WORDS = {True: "same", False: "DIFFERS", None: "not said"}
_NONE = "no critic"
_YES, _NO = True, False
_FIXED_SIZE = ("critic.fsdp.use_dynamic_bsz", False)
TABLE3 = (
    Table3Row("max_prompt_length", 1024, ("data.max_prompt_length",)),
    Table3Row("max_response_length", 1024, ("data.max_response_length",)),
    Table3Row("train_batch_size", 128, ("data.train_batch_size",)),
    Table3Row(
        "total_epochs",
        100,
        ("trainer.total_epochs",),
        "the paper does not say how long an epoch is; here it is reward_server.prompts.epoch_rows",
    ),
    Table3Row("nnodes", 1, ("trainer.nnodes",)),
    Table3Row("n_gpus_per_node", 8, ("trainer.n_gpus_per_node",)),
    Table3Row("actor_model_type", "Qwen2.5-3B-Instruct", (f"{_MODEL}.path",)),
    Table3Row(
        "actor_enable_gradient_checkpointing", _YES, (f"{_MODEL}.enable_gradient_checkpointing",)
    ),
    Table3Row("actor_ppo_mini_batch_size", 128, (f"{_ACTOR}.ppo_mini_batch_size",)),
    _micro("actor_ppo_micro_batch_size", f"{_ACTOR}.ppo_micro_batch_size_per_gpu"),
    Table3Row("actor_grad_clip", 1.0, (f"{_ACTOR}.optim.clip_grad",), "actor.grad_clip is ignored"),
    Table3Row(
        "actor_clip_ratio",
        0.2,
        (f"{_ACTOR}.clip_ratio_low", f"{_ACTOR}.clip_ratio_high"),
        "clip_ratio alone is ignored",
    ),
    Table3Row("actor_entropy_coeff", 0.001, (f"{_ACTOR}.entropy_coeff",)),
    Table3Row(
        "actor_ppo_epochs", 100, (f"{_ACTOR}.ppo_epochs",), "100 optimiser steps on each batch"
    ),
    Table3Row("actor_learning_rate", 1e-5, (f"{_ACTOR}.optim.lr",)),
    _micro(
        "reference_log_prob_micro_batch_size",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
    ),
    Table3Row("rollout_name", "vllm", (f"{_ROLLOUT}.name",)),
    Table3Row("temperature", 0.7, (f"{_ROLLOUT}.temperature",)),
    Table3Row("top_k", -1, (f"{_ROLLOUT}.top_k",)),
    Table3Row("top_p", 1, (f"{_ROLLOUT}.top_p",)),
    Table3Row("prompt_length", 1024, (f"{_ROLLOUT}.prompt_length",)),
    Table3Row("response_length", 1024, (f"{_ROLLOUT}.response_length",)),
    Table3Row("dtype", "bfloat16", (f"{_ROLLOUT}.dtype",)),
    Table3Row("gpu_memory_utilization", 0.2, (f"{_ROLLOUT}.gpu_memory_utilization",)),
    Table3Row("ignore_eos", _NO, (f"{_ROLLOUT}.ignore_eos",)),
    Table3Row("enforce_eager", _YES, (f"{_ROLLOUT}.enforce_eager",)),
    Table3Row("tensor_model_parallel_size", 8, (f"{_ROLLOUT}.tensor_model_parallel_size",)),
    _micro("log_prob_micro_batch_size", f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu"),
    Table3Row("critic_optimizer", None, ("critic.optim.optimizer",), "the paper's cell is empty"),
    Table3Row("critic_learning_rate", 1e-5, ("critic.optim.lr",)),
    Table3Row("critic_model_type", "Qwen2.5-3B-Instruct", ("critic.model.path",)),
    Table3Row(
        "critic_enable_gradient_checkpointing",
        _YES,
        ("critic.model.enable_gradient_checkpointing",),
    ),
    Table3Row("critic_ppo_mini_batch_size", 128, ("critic.ppo_mini_batch_size",)),
    _micro(
        "critic_ppo_micro_batch_size",
        "critic.fsdp.micro_batch_size_per_gpu",
        _CRITIC_MICRO,
        _FIXED_SIZE,
    ),
    _micro(
        "critic_forward_micro_batch_size",
        "critic.fsdp.infer_micro_batch_size_per_gpu",
        _CRITIC_MICRO,
        _FIXED_SIZE,
    ),
    Table3Row("critic_ppo_epochs", 100, ("critic.ppo_epochs",)),
    Table3Row("critic_grad_clip", 1.0, ("critic.optim.clip_grad",), "critic.grad_clip is ignored"),
    Table3Row("critic_cliprange_value", 0.5, ("critic.cliprange_value",)),
    Table3Row("ppo_gamma", 1.0, ("algorithm.gamma",)),
    Table3Row("ppo_lam", 1.0, ("algorithm.lam",)),
    Table3Row("adv_estimator", "gae", ("algorithm.adv_estimator",)),
    Table3Row(
        "ppo_kl_coef",
        0.001,
        ("algorithm.kl_ctrl.kl_coef",),
        "acts with algorithm.use_kl_in_reward alone",
        must=(("algorithm.use_kl_in_reward", True),),
    ),
)


def compare(tree: Tree) -> list[Comparison]:
    """Compare every row of the table with a run's configuration."""
    return [_compare(row, tree) for row in TABLE3]


def _compare(row: Table3Row, tree: Tree) -> Comparison:
    if row.name.startswith("critic_") and not has_critic(tree):
        return Comparison(row, _NONE, None if row.value is None else False)
    missing = [f"{key} is not {_print(value)}" for key, value in row.must if at(tree, key) != value]
    if missing:
        return Comparison(row, "; ".join(missing), is_same=False)
    values = [at(tree, key) for key in row.keys]
    shown = " and ".join(dict.fromkeys(_print(value) for value in values))
    if not row.is_global:
        is_same = all(_is_same(row.value, value) for value in values)
        return Comparison(row, shown, None if row.value is None else is_same)
    gpus = at(tree, "trainer.nnodes", 1) * at(tree, "trainer.n_gpus_per_node", 1)
    is_same = all(isinstance(value, int) and value * gpus == row.value for value in values)
    return Comparison(row, f"{shown} x {gpus} GPU{'s' if gpus > 1 else ''}", is_same)


def has_critic(tree: Tree) -> bool:
    """Tell whether a run trains a critic, as veRL decides it."""
    enabled = at(tree, "critic.enable")
    return bool(enabled) if enabled is not None else at(tree, "algorithm.adv_estimator") == "gae"


def _is_same(paper: object, found: object) -> bool:
    if isinstance(paper, str) and isinstance(found, str):  # a model may be in any folder
        return found.rstrip("/").rpartition("/")[2] == paper
    return found == paper


def _print(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def show(comparisons: list[Comparison]) -> list[str]:
    """Return the comparison as lines of a table."""
    head = ("Table 3", "paper", "veRL", "this run", "")
    rows = [head]
    for one in comparisons:
        keys = ", ".join(key.replace("actor_rollout_ref.", "") for key in one.row.keys)
        paper = "-" if one.row.value is None else _print(one.row.value)
        rows.append((one.row.name, paper, keys, one.found, _WORDS[one.is_same]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def explain(comparisons: list[Comparison], reasons: Mapping[str, str]) -> list[str]:
    """Return a line for each difference with its reason, from the preset's comments."""
    lines = []
    for one in comparisons:
        if one.is_same is False:
            keys = [*one.row.keys, *(key for key, _ in one.row.must)]
            keys = ["critic.enable", "algorithm.adv_estimator"] if one.found == _NONE else keys
            why = next(
                (reasons[key] for key in keys if key in reasons), "the preset gives no reason"
            )
            lines.append(f"  {one.row.name}: {one.found} instead of {_print(one.row.value)}: {why}")
    return lines
