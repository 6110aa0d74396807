"""Rows for TRL's trainers, whose prompts are fetched when a step needs them.

    prompts = TaskPrompts(settings, tokenizer, most_tokens=4096)
    DurationGRPOTrainer(..., train_dataset=prompts.rows(), prompts=prompts)

Rows alternate between the tasks, each with its task's from-scratch prompt. They are an ordinary
data set for any trainer. TRL's data loaders read rows at least a batch ahead, repeatedly, and on
several machines. A data set that requested prompts would improve on outdated steps and split
groups. So the trainer requests prompts just before it generates.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from datasets import Dataset

from trainer_client.prompting import PromptRequest, PromptSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedTokenizerBase

    from trainer_client.prompting import Messages, TrainerPrompt
    from trainer_client.settings import RunSettings


class ChatTokens:
    """Counts tokens as TRL's chat template does."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer

    def __call__(self, messages: Messages, /) -> int:
        """Return how many tokens the model reads."""
        read = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=True
        )
        return len(read["input_ids"])


class TaskPrompts:
    """The rows and prompts of a run, each of at most `most_tokens`.

    Raises:
        ValueError: a task is unknown, or has no prompt that is short enough.
        RewardServerError: the server does not answer.
    """

    def __init__(
        self, settings: RunSettings, tokenizer: PreTrainedTokenizerBase, most_tokens: int
    ) -> None:
        self._settings = settings
        self._source = PromptSource(settings, ChatTokens(tokenizer), most_tokens)
        self._source.begin()
        self._step = 0
        self._turn = 0

    def rows(self) -> Dataset:
        """Return an epoch of training rows."""
        return self._rows(self._settings.prompts.epoch_rows, is_validation=False)

    def validation_rows(self) -> Dataset:
        """Return validation rows. Their programs belong to a run of their own."""
        return self._rows(self._settings.prompts.validation_rows, is_validation=True)

    def draw(self, tasks: Sequence[str], step: int) -> list[dict[str, Any]]:
        """Return the prompts of a step for rows of these tasks, whatever the server does.

        The same step gets the same prompts, so a resumed run continues as before. A step that
        generates several times gets new prompts each time.
        """
        self._turn = self._turn + 1 if step == self._step else 0
        self._step = step
        found: dict[str, list[TrainerPrompt]] = {}
        for task_id, count in Counter(tasks).items():
            request = PromptRequest(task_id, count, self._seed(task_id), step)
            found[task_id] = self._source.draw(request)
        return [_columns(found[task_id].pop()) for task_id in tasks]

    @property
    def fallbacks(self) -> int:
        """The number of prompts that fell back to the from-scratch prompt."""
        return self._source.fallbacks

    def _seed(self, task_id: str) -> int:
        """Return a seed; the next few are reserved for repeated requests."""
        position = zlib.crc32(f"{self._step}/{self._turn}/{task_id}".encode())
        return (self._settings.prompts.seed << 32) | (position & ~3)

    def _rows(self, count: int, *, is_validation: bool) -> Dataset:
        tasks = self._settings.tasks
        named = [tasks[index % len(tasks)] for index in range(count)]
        return Dataset.from_list(
            [
                {
                    "task_id": task_id,
                    "is_validation": is_validation,
                    **_columns(self._source.scratch(task_id)),
                }
                for task_id in named
            ]
        )


def _columns(prompt: TrainerPrompt) -> dict[str, Any]:
    parent_id = None if prompt.parent_id is None else str(prompt.parent_id)
    return {"prompt": prompt.chat(), "parent_id": parent_id}
