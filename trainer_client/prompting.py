"""Fetches prompts when they are needed, within a token limit, and falls back instead of failing.

A run fetches the from-scratch prompt of each of its tasks once at its start, where an error may
still end the run. It fetches improve prompts when it needs them. If that fails, the from-scratch
prompt replaces them, and the source makes no further request for a while. The module depends on
no trainer; the caller passes in a token counter.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, model_validator

from trainer_client.client.errors import RequestRefusedError, RewardServerError
from trainer_client.client.outages import Backoff

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from trainer_client.client.answers import JsonObject
    from trainer_client.client.blocking import RewardClient
    from trainer_client.settings import RunSettings

Messages = list[dict[str, str]]

FETCH_SECONDS = 5.0
_FIRST_RATIO = 3.0
_MARGIN = 0.97
_SHARES = (_MARGIN, 0.9, 0.75)
_FULL = 0.9
LARGEST_BUDGET = 1 << 20


class CountTokens(Protocol):
    """Counts the tokens of a chat, including its template."""

    def __call__(self, messages: Messages, /) -> int:
        """Return the number."""


def count_characters(messages: Messages) -> int:
    """Count characters, for trainers that do not expose their tokenizer."""
    return sum(len(message["content"]) for message in messages)


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)

    role: Literal["system", "user"]
    content: str


class TrainerPrompt(BaseModel):
    """A prompt for the model, and the solution that it should improve on, if any."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["scratch", "improve"]
    messages: tuple[_Message, ...]
    parent_id: UUID | None

    @model_validator(mode="after")
    def _improves_on_something(self) -> Self:
        if (self.kind == "improve") != (self.parent_id is not None) or not self.messages:
            message = "an improve prompt has a parent, another has none, and both have messages"
            raise ValueError(message)
        return self

    def chat(self) -> Messages:
        """Return the messages as a list of dictionaries."""
        return [message.model_dump() for message in self.messages]

    def text(self, role: str) -> str | None:
        """Return the first message of a role, if there is one."""
        return next((one.content for one in self.messages if one.role == role), None)

    @property
    def characters(self) -> int:
        """The length as the server's budgets count it."""
        return sum(len(message.content) for message in self.messages)


class _Reply(BaseModel):
    prompts: list[TrainerPrompt]


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A request for prompts of one task, for a step; the seed determines the sampling."""

    task_id: str
    count: int
    seed: int
    step: int | None = None


class BudgetRatio:
    """Converts the run's token limit into a budget that the server can count.

    The server counts characters, or tokens if it has the tokenizer. `ratio` is the number of
    those units per token. It follows the densest text so far: down at once, up slowly.
    """

    def __init__(self, most_tokens: int, tokenizer: str | None) -> None:
        self.most_tokens = most_tokens
        self._tokenizer = tokenizer
        self._has_seen = False
        self.ratio = _FIRST_RATIO if tokenizer is None else 1.0

    def units(self, share: float) -> int:
        """Return the budget of prompts that just fit, times a share."""
        return max(1, min(int(self.most_tokens * self.ratio * share), LARGEST_BUDGET))

    def budget(self, units: int) -> JsonObject:
        """Return a budget as a field of the request."""
        if self._tokenizer is None:
            return {"characters": units}
        return {"tokens": units, "tokenizer": self._tokenizer}

    def learn(self, lengths: Collection[tuple[int, int]]) -> None:
        """Update the ratio by the characters and tokens of prompts from one response."""
        if not lengths:
            return
        if self._tokenizer is not None:
            self.ratio *= min(1.0, self.most_tokens / max(tokens for _, tokens in lengths))
            return
        seen = min(characters / max(1, tokens) for characters, tokens in lengths)
        is_lower = seen < self.ratio or not self._has_seen
        self.ratio = seen if is_lower else self.ratio + 0.1 * (seen - self.ratio)
        self._has_seen = True


class PromptSource:
    """The prompts of a run. It is picklable, because it connects lazily."""

    def __init__(self, settings: RunSettings, count_tokens: CountTokens, most_tokens: int) -> None:
        self._settings = settings
        self._count_tokens = count_tokens
        self._most_tokens = most_tokens
        self._scratch: dict[str, TrainerPrompt] = {}
        self._backoff = Backoff("prompts are from scratch")
        self._client: RewardClient | None = None
        self.budget_ratio = BudgetRatio(most_tokens, settings.prompts.tokenizer)
        self.fallbacks = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def begin(self) -> None:
        """Fetch the from-scratch prompt of every task, within the run's deadline.

        Raises:
            ValueError: a task is unknown, or has no prompt that is short enough.
            RewardServerError: the server does not answer.
        """
        for task_id in self._settings.tasks:
            self._scratch[task_id] = self._longest_scratch(task_id)

    def scratch(self, task_id: str) -> TrainerPrompt:
        """Return the from-scratch prompt of a task."""
        return self._scratch[task_id]

    def draw(self, request: PromptRequest, seconds: float = FETCH_SECONDS) -> list[TrainerPrompt]:
        """Return the requested number of prompts in time, whatever the server does."""
        scratch = self._scratch[request.task_id]
        if not self._settings.prompts.improve_fraction:
            return [scratch] * request.count
        if not self._backoff.may_ask():
            self.fallbacks += request.count
            return [scratch] * request.count
        try:
            drawn = self._draw(request, time.monotonic() + seconds)
        except Exception as error:  # noqa: BLE001 - an exception here would end the training run
            self._backoff.failed(error)
            self.fallbacks += request.count
            return [scratch] * request.count
        self._backoff.answered()
        self.fallbacks += drawn.count(None)
        return [prompt or scratch for prompt in drawn]

    def _draw(self, request: PromptRequest, deadline: float) -> list[TrainerPrompt | None]:
        """Return prompts that fit, and None where none is short enough."""
        fraction = self._settings.prompts.improve_fraction
        drawn: list[TrainerPrompt | None] = [None] * request.count
        missing = list(range(request.count))
        for attempt, share in enumerate(_SHARES):
            again = PromptRequest(
                request.task_id, len(missing), request.seed + attempt, request.step
            )
            try:
                found = self._ask(
                    again, 1.0 if attempt else fraction, self.budget_ratio.units(share), deadline
                )
            except RewardServerError:
                if not attempt:
                    raise
                break
            tokens = self._measure({prompt for prompt in found if prompt.kind == "improve"})
            for index, prompt in zip(missing, found, strict=True):
                is_short = tokens.get(prompt, 0) <= self._most_tokens
                drawn[index] = prompt if is_short else None
            missing = [index for index in missing if drawn[index] is None]
            if not missing:
                break
        # All from-scratch prompts are equal, and the one fetched at the start fits.
        scratch = self._scratch[request.task_id]
        return [scratch if one is not None and one.kind == "scratch" else one for one in drawn]

    def _measure(self, prompts: Collection[TrainerPrompt]) -> dict[TrainerPrompt, int]:
        tokens = {prompt: self._count_tokens(prompt.chat()) for prompt in prompts}
        self.budget_ratio.learn([(prompt.characters, count) for prompt, count in tokens.items()])
        return tokens

    def _longest_scratch(self, task_id: str) -> TrainerPrompt:
        """Return the longest from-scratch prompt that fits.

        This is a binary search between budgets that are too small for the server and budgets that
        are too large for the model. It starts at the estimate of the budget ratio.
        """
        best, low, high = None, 0, LARGEST_BUDGET
        why = "there is none"
        while high - low > max(1, high // 50):
            guess = self.budget_ratio.units(_MARGIN)
            guess = guess if low < guess < high else (low + high) // 2
            try:
                prompt = self._ask_scratch(task_id, guess)
            except RequestRefusedError as error:
                low, why = guess, str(error) if high == LARGEST_BUDGET else why
                continue
            tokens = self._measure([prompt])[prompt]
            if tokens > self._most_tokens:
                high, why = guess, f"the shortest has {tokens} tokens"
            elif best is not None and prompt.characters <= best.characters:
                return best
            else:
                best, low = prompt, guess
                if tokens >= _FULL * self._most_tokens:
                    return best
        if best is None:
            most = f"max_prompt_length={self._most_tokens}"
            message = f"no prompt of task {task_id!r} fits {most}: {why}"
            raise ValueError(message)
        return best

    def _ask_scratch(self, task_id: str, units: int) -> TrainerPrompt:
        deadline = time.monotonic() + self._settings.deadline_seconds
        (prompt,) = self._ask(PromptRequest(task_id, 1, seed=0), 0.0, units, deadline)
        return prompt

    def _ask(
        self, request: PromptRequest, fraction: float, units: int, deadline: float
    ) -> list[TrainerPrompt]:
        settings = self._settings
        fields = {
            "run_id": settings.run_id,
            "n": request.count,
            "improve_fraction": fraction,
            "strategy": settings.prompts.strategy,
            "scope": settings.prompts.scope,
            "parents": settings.prompts.parents,
            "seed": request.seed,
            "step": request.step,
            "wall_seconds": settings.wall_seconds,
            "budget": self.budget_ratio.budget(units),
        }
        if self._client is None:
            self._client = settings.client()
        left = max(0.001, deadline - time.monotonic())
        reply = self._client.prompts(request.task_id, deadline_seconds=left, **fields)
        prompts = _Reply.model_validate(reply).prompts
        if len(prompts) != request.count:
            message = f"{len(prompts)} prompts came back for {request.count}"
            raise ValueError(message)
        return prompts


def endless_prompts(
    settings: RunSettings, most_characters: int
) -> Iterator[tuple[str, TrainerPrompt]]:
    """Yield tasks in turn, each with a prompt, for trainers that count neither tokens nor steps.

    After the first prompt, an unreachable server does not end the iteration.

    Raises:
        ValueError, RewardServerError: as `PromptSource.begin` does.
    """
    settings = settings.without_steps()
    source = PromptSource(settings, count_characters, most_characters)
    source.begin()
    for seed in itertools.count(settings.prompts.seed):
        for task_id in settings.tasks:
            [prompt] = source.draw(PromptRequest(task_id, 1, seed))
            yield task_id, prompt
