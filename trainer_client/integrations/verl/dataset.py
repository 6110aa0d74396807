"""A data set for veRL: rows name their task and get their prompt when they are used.

    data.custom_cls.path=pkg://trainer_client.integrations.verl.dataset
    data.custom_cls.name=TaskDataset
    data.train_files=train data.val_files=validation data.dataloader_num_workers=0
    +data.reward_server='${reward_server}'

It reads no file. Rows alternate between the tasks. Some prompts of training rows improve on
solutions of the previous step; validation rows have only from-scratch prompts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Dataset
from verl.utils.skip import SkipManager
from verl.utils.tokenizer.continuous_token_wiring import create_continuous_token_builder

from trainer_client.integrations.verl.registration import check_registered
from trainer_client.prompting import PromptRequest, PromptSource
from trainer_client.settings import NODE, RunSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainer_client.prompting import Messages, TrainerPrompt

TRAINING, VALIDATION = "train", "validation"
_MODES = ("sync", "colocate_async")
_MOST_AT_ONCE = 1024


@dataclass(frozen=True)
class VerlChatTokens:
    """Counts tokens as the rollout's chat template does."""

    builder: Any

    def __call__(self, messages: Messages, /) -> int:
        """Return how many tokens the model reads."""
        return len(self.builder.build_initial_tokens(messages))


class TaskDataset(Dataset):
    """The rows of a run.

    The step comes from veRL: prompts for step s improve on the latest step before s. That also
    holds for replacements late in step s, and for a run that resumes at s with later steps in the
    store. A count of the rows would be ahead of the step because of warm-up and refills.
    """

    def __init__(
        self,
        data_files: object,
        tokenizer: Any,  # noqa: ANN401 - veRL is not installed where mypy runs
        config: Any,  # noqa: ANN401
        processor: Any = None,  # noqa: ANN401
        max_samples: int = -1,
    ) -> None:
        settings = RunSettings.read(config.get(NODE))
        self._is_training = _is_training(data_files)
        self._tasks = settings.tasks
        self._seed = settings.prompts.seed
        self._rows = _count_rows(settings, config, max_samples, is_training=self._is_training)
        self._rows_drawn = 0
        _refuse_workers(config)
        if settings.durations.enabled:
            _check_plugin(config)
        builder = create_continuous_token_builder(
            tokenizer,
            model_family="default",
            chat_template_kwargs=dict(config.get("apply_chat_template_kwargs") or {}),
            mm_processor_kwargs=dict(config.get("mm_processor_kwargs") or {}),
            processor=processor,
        )
        self._prompts = PromptSource(settings, VerlChatTokens(builder), config.max_prompt_length)
        self._prompts.begin()

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: int) -> dict[str, Any]:
        (row,) = self.__getitems__([index])
        return row

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Return many rows, with one request for each task."""
        if not all(0 <= index < self._rows for index in indices):
            raise IndexError(indices)
        prompts = self._draw(indices) if self._is_training else self._from_scratch(indices)
        return [
            make_row(index, self._task_of(index), prompts[position], is_training=self._is_training)
            for position, index in enumerate(indices)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs to get the same prompts."""
        return {"rows_drawn": self._rows_drawn, "ratio": self._prompts.budget_ratio.ratio}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of another data set."""
        self._rows_drawn = state["rows_drawn"]
        self._prompts.budget_ratio.ratio = state["ratio"]

    @classmethod
    async def process_multi_modal_info(
        cls, messages: Messages, **_: object
    ) -> tuple[None, None, None]:
        """Return no images, for rollouts of multimodal models."""
        del messages
        return None, None, None

    @property
    def fallbacks(self) -> int:
        """The number of prompts that fell back to the from-scratch prompt."""
        return self._prompts.fallbacks

    def _task_of(self, index: int) -> str:
        return self._tasks[index % len(self._tasks)]

    def _from_scratch(self, indices: Sequence[int]) -> list[TrainerPrompt]:
        return [self._prompts.scratch(self._task_of(index)) for index in indices]

    def _draw(self, indices: Sequence[int]) -> list[TrainerPrompt]:
        drawn: dict[int, TrainerPrompt] = {}
        step = _current_step()
        for task_id, positions in self._requests(indices):
            request = PromptRequest(task_id, len(positions), self._next_seed(len(positions)), step)
            drawn.update(zip(positions, self._prompts.draw(request), strict=True))
        return [drawn[position] for position in range(len(indices))]

    def _requests(self, indices: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
        """Yield the positions of each task's rows, split at the limit of a request."""
        positions: defaultdict[str, list[int]] = defaultdict(list)
        for position, index in enumerate(indices):
            positions[self._task_of(index)].append(position)
        for task_id, of_task in positions.items():
            for first in range(0, len(of_task), _MOST_AT_ONCE):
                yield task_id, of_task[first : first + _MOST_AT_ONCE]

    def _next_seed(self, count: int) -> int:
        """Return a seed; the next few are reserved for repeated requests."""
        seed = (self._seed << 32) | (self._rows_drawn % (1 << 30)) << 2
        self._rows_drawn += count
        return seed


def make_row(
    index: int, task_id: str, prompt: TrainerPrompt, *, is_training: bool
) -> dict[str, Any]:
    """Return a row for veRL, which passes `extra_info` to the reward manager."""
    parent_id = None if prompt.parent_id is None else str(prompt.parent_id)
    return {
        "raw_prompt": prompt.chat(),
        "data_source": task_id,
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {
            "index": index,
            "task_id": task_id,
            "is_validation": not is_training,
            "prompt_kind": prompt.kind,
            "parent_id": parent_id,
        },
        "index": index,
        "tools_kwargs": {},
        "interaction_kwargs": {},
        "dummy_tensor": torch.tensor([0], dtype=torch.uint8),
    }


def _current_step() -> int | None:
    """Return the step of this process's trainer, which veRL keeps for its own caches."""
    step = int(getattr(SkipManager, "step", 0))
    return step if step > 0 else None


def _is_training(data_files: object) -> bool:
    named = [data_files] if isinstance(data_files, str) else list(data_files or [])  # type: ignore[call-overload]
    if named not in ([TRAINING], [VALIDATION]):
        message = (
            f"data.train_files must be {TRAINING!r} and data.val_files {VALIDATION!r}: "
            f"this data set reads no files, and got {named}"
        )
        raise ValueError(message)
    return named == [TRAINING]


def _count_rows(settings: RunSettings, config: Any, most: int, *, is_training: bool) -> int:  # noqa: ANN401
    prompts = settings.prompts
    rows = prompts.epoch_rows if is_training else prompts.validation_rows
    rows = min(rows, most) if most > 0 else rows
    if is_training and rows < config.train_batch_size:
        message = (
            f"an epoch of {rows} rows ({NODE}.prompts.epoch_rows, data.train_max_samples) is less "
            f"than data.train_batch_size={config.train_batch_size}"
        )
        raise ValueError(message)
    return rows


def _refuse_workers(config: Any) -> None:  # noqa: ANN401
    if config.get("dataloader_num_workers"):
        message = (
            "data.dataloader_num_workers must be 0: others would fetch prompts long before they "
            "are used, and improve on steps long past"
        )
        raise ValueError(message)


def _check_plugin(config: Any) -> None:  # noqa: ANN401
    """Check that the trainer of this process weights gradients by durations."""
    root = config._get_root()  # noqa: SLF001 - the only way up from config.data
    mode = root.trainer.v1.trainer_mode if "trainer" in root else None
    for one in _MODES if mode is None else (mode,):
        check_registered(one)
