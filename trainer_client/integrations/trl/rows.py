"""Rows for TRL's trainers, and the prompts that they get at the moment of use.

    prompts = TaskPrompts(settings, tokenizer, most_tokens=4096)
    DurationGRPOTrainer(..., train_dataset=prompts.rows(), prompts=prompts)

Rows go round the tasks, each with its task's prompt from scratch, and are an ordinary data set for
any trainer. TRL's data loaders draw rows a batch or more ahead, and every row as often as it is
generated from and trained on, on several machines. A data set that asked the server would improve
on steps long past and tear groups apart; so the trainer asks, when it is about to generate.
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
    """Counts a prompt as TRL tokenises it."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer

    def __call__(self, messages: Messages, /) -> int:
        """Return how many tokens the model reads."""
        read = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=True
        )
        return len(read["input_ids"])


class TaskPrompts:
    """The rows of a run and its prompts, none of which is longer than `most_tokens`.

    Raises:
        ValueError: a task is unknown, or has no prompt that is short enough.
        RewardServerError: the server is not there.
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
        """Return an epoch of rows to train on."""
        return self._rows(self._settings.prompts.epoch_rows, is_validation=False)

    def validation_rows(self) -> Dataset:
        """Return rows that nothing is trained on; the store keeps their programs apart."""
        return self._rows(self._settings.prompts.validation_rows, is_validation=True)

    def draw(self, tasks: Sequence[str], step: int) -> list[dict[str, Any]]:
        """Return what the rows of these tasks are asked in this step, whatever the server does.

        The same step draws the same, so a resumed run goes on as it would have; a step that
        generates several times draws anew each time.
        """
        self._turn = self._turn + 1 if step == self._step else 0
        self._step = step
        found: dict[str, list[TrainerPrompt]] = {}
        for task_id, count in Counter(tasks).items():
            request = PromptRequest(task_id, count, self._seed(task_id), step)
            found[task_id] = self._source.draw(request)
        return [_asked(found[task_id].pop()) for task_id in tasks]

    @property
    def fallbacks(self) -> int:
        """Return how many prompts are from scratch because nothing else could be had."""
        return self._source.fallbacks

    def _seed(self, task_id: str) -> int:
        """Return a seed that leaves the next few for prompts that are asked for again."""
        place = zlib.crc32(f"{self._step}/{self._turn}/{task_id}".encode())
        return (self._settings.prompts.seed << 32) | (place & ~3)

    def _rows(self, count: int, *, is_validation: bool) -> Dataset:
        tasks = self._settings.tasks
        named = [tasks[index % len(tasks)] for index in range(count)]
        return Dataset.from_list(
            [
                {
                    "task_id": task_id,
                    "is_validation": is_validation,
                    **_asked(self._source.scratch(task_id)),
                }
                for task_id in named
            ]
        )


def _asked(prompt: TrainerPrompt) -> dict[str, Any]:
    parent_id = None if prompt.parent_id is None else str(prompt.parent_id)
    return {"prompt": prompt.chat(), "parent_id": parent_id}
