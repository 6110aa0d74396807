"""veRL's data set of a run: rows that say which task, and get their prompt when they are used.

    data.custom_cls.path=pkg://trainer_client.integrations.verl.dataset
    data.custom_cls.name=TaskDataset
    data.train_files=train data.val_files=validation data.dataloader_num_workers=0
    +data.reward_server='${reward_server}'

No file is read. Rows go round the tasks; those of training get prompts of which some improve on
what the run did in the step before, those of validation are all from scratch.
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
    """Counts a prompt as the rollout will tokenise it."""

    builder: Any

    def __call__(self, messages: Messages, /) -> int:
        """Return how many tokens the model reads."""
        return len(self.builder.build_initial_tokens(messages))


class TaskDataset(Dataset):
    """The rows of a run.

    The run's step is what veRL says it is: prompts for step s improve on the latest step before s,
    also when they replace others late in s, and also in a run that was resumed at s over a store
    that has seen later steps. Rows drawn, counted, would be ahead of it by warm-up and refills.
    """

    def __init__(
        self,
        data_files: object,
        tokenizer: Any,  # noqa: ANN401 - veRL is untyped where this is checked
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
        """Return many rows, with one request for each of their tasks."""
        if not all(0 <= index < self._rows for index in indices):
            raise IndexError(indices)
        prompts = self._draw(indices) if self._is_training else self._from_scratch(indices)
        return [
            make_row(index, self._task_of(index), prompts[place], is_training=self._is_training)
            for place, index in enumerate(indices)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to draw as this one would have."""
        return {"rows_drawn": self._rows_drawn, "ratio": self._prompts.budget_ratio.ratio}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another data set stood."""
        self._rows_drawn = state["rows_drawn"]
        self._prompts.budget_ratio.ratio = state["ratio"]

    @classmethod
    async def process_multi_modal_info(
        cls, messages: Messages, **_: object
    ) -> tuple[None, None, None]:
        """Tell the rollout of a model that can see that there is nothing to see."""
        del messages
        return None, None, None

    @property
    def fallbacks(self) -> int:
        """Return how many prompts are from scratch because nothing else could be had."""
        return self._prompts.fallbacks

    def _task_of(self, index: int) -> str:
        return self._tasks[index % len(self._tasks)]

    def _from_scratch(self, indices: Sequence[int]) -> list[TrainerPrompt]:
        return [self._prompts.scratch(self._task_of(index)) for index in indices]

    def _draw(self, indices: Sequence[int]) -> list[TrainerPrompt]:
        drawn: dict[int, TrainerPrompt] = {}
        step = _present_step()
        for task_id, places in self._shares(indices):
            request = PromptRequest(task_id, len(places), self._next_seed(len(places)), step)
            drawn.update(zip(places, self._prompts.draw(request), strict=True))
        return [drawn[place] for place in range(len(indices))]

    def _shares(self, indices: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
        """Yield the places of each task, as many as may be asked for at once."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, index in enumerate(indices):
            places[self._task_of(index)].append(place)
        for task_id, all_of_it in places.items():
            for first in range(0, len(all_of_it), _MOST_AT_ONCE):
                yield task_id, all_of_it[first : first + _MOST_AT_ONCE]

    def _next_seed(self, count: int) -> int:
        """Return a seed that leaves the next few for prompts that are asked for again."""
        seed = (self._seed << 32) | (self._rows_drawn % (1 << 30)) << 2
        self._rows_drawn += count
        return seed


def make_row(
    index: int, task_id: str, prompt: TrainerPrompt, *, is_training: bool
) -> dict[str, Any]:
    """Return a row as veRL wants it; `extra_info` goes to the reward manager as it is."""
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


def _present_step() -> int | None:
    """Return the step of the trainer in this process; it says so for its own caches."""
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
    """See to it that the trainer of this process weighs durations.

    Raises:
        RuntimeError: it does not.
    """
    root = config._get_root()  # noqa: SLF001 - the only way up from config.data
    mode = root.trainer.v1.trainer_mode if "trainer" in root else None
    for one in _MODES if mode is None else (mode,):
        check_registered(one)
