"""Duration-weighted advantages in TRL: a subclass of its GRPO trainer.

    DurationGRPOTrainer(model, reward_funcs=make_reward(run), ..., durations=DurationSettings())

One method of TRL generates, scores and normalises a batch, and returns the advantages of this
process's samples before they are shuffled and split. The override multiplies them by Δt / mean Δt;
the mean covers all processes and all samples that the step trains on. Evaluation is unchanged.
With `prompts` the override also replaces the prompts of a training batch, because data loaders
read ahead of the trainer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
import trl
from accelerate.utils import broadcast_object_list, gather, gather_object
from trl import GRPOTrainer

from trainer_client.durations import describe, weigh
from trainer_client.integrations.trl.reward import RewardFunction
from trainer_client.measures import DURATIONS
from trainer_client.settings import DurationSettings

if TYPE_CHECKING:
    from trainer_client.integrations.trl.rows import TaskPrompts

    Inputs = list[dict[str, Any]]

_EXTENDED_METHOD = "_generate_and_score_completions"


class DurationGRPOTrainer(GRPOTrainer):
    """GRPO with advantages weighted by the duration of the sample's program."""

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401 - those of TRL's trainer
        durations: DurationSettings | None = None,
        prompts: TaskPrompts | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        if not hasattr(GRPOTrainer, _EXTENDED_METHOD):
            _refuse(f"its GRPOTrainer has no {_EXTENDED_METHOD}")
        super().__init__(*arguments, **options)
        self._durations = durations or DurationSettings()
        self._prompts = prompts
        self._scorer = _scorer(self.reward_funcs) if self._durations.enabled else None

    def _generate_and_score_completions(self, inputs: Inputs) -> dict[str, Any]:
        is_training = self.model.training
        if is_training and self._prompts is not None:
            inputs = self._with_prompts(inputs, self._prompts)
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if is_training and self._scorer is not None:
            weights = self._weights(inputs, output, self._scorer)
            output["advantages"] = output["advantages"] * weights
        return output

    def _weights(
        self, inputs: Inputs, output: dict[str, Any], scorer: RewardFunction
    ) -> torch.Tensor:
        """Return the weights of this process's samples.

        Samples that TRL masks (`mask_truncated_completions`) do not count towards the mean.
        """
        _check(inputs, output, scorer)
        clock = DURATIONS[self._durations.clock]
        local = [float("nan") if a is None else getattr(a, clock) for a in scorer.answers]
        device = output["advantages"].device
        seconds = gather(torch.tensor(local, dtype=torch.float32, device=device)).double()
        is_kept = gather(output["completion_mask"].bool().any(dim=1))
        is_real = (is_kept & seconds.isfinite()).cpu().numpy()
        tasks = gather_object([str(row.get("task_id")) for row in inputs])
        taken = np.nan_to_num(seconds.cpu().numpy())
        weights = weigh(taken, tasks, is_real, self._durations)
        for name, value in describe(taken, weights, is_real).items():
            self._metrics["train"][name].append(value)
        first = self.accelerator.process_index * len(inputs)
        mine = weights[first : first + len(inputs)]
        return torch.tensor(mine, dtype=output["advantages"].dtype, device=device)

    def _with_prompts(self, inputs: Inputs, prompts: TaskPrompts) -> Inputs:
        """Return the rows with current prompts, the same for all rows of a group.

        A group may span several processes, so one process requests all prompts.
        """
        tasks = gather_object([str(row["task_id"]) for row in inputs])[:: self.num_generations]
        drawn: list[Any] = [None] * len(tasks)
        if self.accelerator.is_main_process:
            drawn = prompts.draw(tasks, self.state.global_step + 1)
        broadcast_object_list(drawn)
        first = self.accelerator.process_index * len(inputs)
        return [
            {**row, **drawn[index // self.num_generations]}
            for index, row in enumerate(inputs, start=first)
        ]


def _scorer(functions: list[object]) -> RewardFunction:
    """Return the reward function that provides durations."""
    ours = [one for one in functions if isinstance(one, RewardFunction)]
    if len(ours) != 1:
        message = (
            "durations come from one function of trainer_client.integrations.trl.reward; "
            f"{len(ours)} of reward_funcs are (DurationSettings(enabled=False) does without)"
        )
        raise ValueError(message)
    return ours[0]


def _check(inputs: Inputs, output: dict[str, Any], scorer: RewardFunction) -> None:
    """Check that samples, answers and advantages match."""
    if not {"advantages", "completion_mask"} <= output.keys():
        _refuse(f"{_EXTENDED_METHOD} returns {sorted(output)}")
    if not len(inputs) == len(scorer.answers) == len(output["advantages"]):
        counts = f"{len(inputs)} rows, {len(scorer.answers)} answers"
        _refuse(f"{_EXTENDED_METHOD} returns {len(output['advantages'])} advantages for {counts}")


def _refuse(why: str) -> NoReturn:
    message = f"TRL {trl.__version__} cannot be extended: {why}; 1.16 is known to work"
    raise RuntimeError(message)
