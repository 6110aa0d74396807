"""A tiny run of TRL's trainer on the CPU, and what its seam saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from tests.integration.verl.training import TASK
from trainer_client.integrations.trl.trainer import DurationGRPOTrainer

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from trainer_client.client.answers import Answer

GROUP = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that was generated and scored: as stock TRL leaves it, and as it is trained on."""

    is_training: bool
    inputs: list[dict[str, Any]]
    answers: tuple[Answer | None, ...]
    stock: torch.Tensor
    advantages: torch.Tensor


class Stock(GRPOTrainer):  # type: ignore[misc]  # not installed here
    """TRL's own trainer, which remembers the advantages that it computed."""

    stock: torch.Tensor

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self.stock = output["advantages"].clone()
        self.inputs = inputs
        return output


class Recorded(DurationGRPOTrainer, Stock):
    """Ours over it, and what became of them."""

    batches: list[Batch]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        batch = Batch(
            self.model.training,
            self.inputs,
            self.reward_funcs[0].answers,
            self.stock,
            output["advantages"].clone(),
        )
        self.batches = [*getattr(self, "batches", []), batch]
        return output


def rows(count: int = 8, task_id: str = TASK) -> Dataset:
    """Return rows that nobody has to be asked for."""
    asked = [[{"role": "user", "content": f"question {index}"}] for index in range(count)]
    return Dataset.from_list([{"prompt": one, "task_id": task_id} for one in asked])


def tokenizer(models: Path) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast.from_pretrained(models / "tokenizer")


def make(
    kind: type[GRPOTrainer],
    models: Path,
    function: Any,
    train_dataset: Dataset | None = None,
    *,
    arguments: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Make a trainer of the tiny policy, whose every token is a whole answer."""
    config = GRPOConfig(
        **{
            "output_dir": str(models / "output"),
            "use_cpu": True,
            "bf16": False,
            "num_generations": GROUP,
            "per_device_train_batch_size": 2 * GROUP,
            "max_completion_length": 1,
            "max_steps": 3,
            "logging_steps": 1,
            "learning_rate": 1e-2,
            "save_strategy": "no",
            "report_to": [],
            "disable_tqdm": True,
            **(arguments or {}),
        }
    )
    return kind(
        AutoModelForCausalLM.from_pretrained(models / "policy"),
        reward_funcs=function,
        args=config,
        train_dataset=rows() if train_dataset is None else train_dataset,
        processing_class=tokenizer(models),
        **options,
    )


def weights_of(trainer: Any) -> dict[str, torch.Tensor]:
    """Return a copy of the policy."""
    return {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
