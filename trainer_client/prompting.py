"""Prompts at the moment of use, never too long, and never a reason to stop.

A run asks for the prompt from scratch of each of its tasks once, at its start, where a mistake may
still end it. Prompts that improve on a solution are asked for when they are wanted. Whatever goes
wrong then, the prompt from scratch stands in, and a server that is away is not waited for again
for a while. Nothing here knows a trainer or torch; how tokens are counted is given.
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
    """Tells how many tokens the model reads for a chat, its template and all."""

    def __call__(self, messages: Messages, /) -> int:
        """Return the number."""


def count_characters(messages: Messages) -> int:
    """Return a length for trainers that do not say how their model counts tokens."""
    return sum(len(message["content"]) for message in messages)


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)

    role: Literal["system", "user"]
    content: str


class TrainerPrompt(BaseModel):
    """What the model is asked, and which solution it is to improve on, if any."""

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
        """Return the messages as trainers want them."""
        return [message.model_dump() for message in self.messages]

    def text(self, role: str) -> str | None:
        """Return what is said in a role, None if nothing is."""
        return next((one.content for one in self.messages if one.role == role), None)

    @property
    def characters(self) -> int:
        """Return the length as the server's budgets count it."""
        return sum(len(message.content) for message in self.messages)


class _Reply(BaseModel):
    prompts: list[TrainerPrompt]


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """Prompts of one task; `step` is the one they are for, `seed` decides the draw."""

    task_id: str
    count: int
    seed: int
    step: int | None = None


class BudgetRatio:
    """How much budget a token of the run's tokenizer is worth.

    The server counts characters, or tokens where it knows the tokenizer. `ratio` follows the
    densest text that was seen: down at once, up slowly.
    """

    def __init__(self, most_tokens: int, tokenizer: str | None) -> None:
        self.most_tokens = most_tokens
        self._tokenizer = tokenizer
        self._has_seen = False
        self.ratio = _FIRST_RATIO if tokenizer is None else 1.0

    def units(self, share: float) -> int:
        """Return the budget of prompts that just fit, or of a share of it."""
        return max(1, min(int(self.most_tokens * self.ratio * share), LARGEST_BUDGET))

    def budget(self, units: int) -> JsonObject:
        """Return a budget as the server wants it."""
        if self._tokenizer is None:
            return {"characters": units}
        return {"tokens": units, "tokenizer": self._tokenizer}

    def learn(self, lengths: Collection[tuple[int, int]]) -> None:
        """Take note of prompts that came together, each by its characters and tokens."""
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
    """The prompts of a run; picklable, as connections are made when they are needed."""

    def __init__(self, settings: RunSettings, count_tokens: CountTokens, most_tokens: int) -> None:
        self._settings = settings
        self._count_tokens = count_tokens
        self._most_tokens = most_tokens
        self._scratch: dict[str, TrainerPrompt] = {}
        self._patience = Backoff("prompts are from scratch")
        self._client: RewardClient | None = None
        self.yardstick = BudgetRatio(most_tokens, settings.prompts.tokenizer)
        self.fallbacks = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def begin(self) -> None:
        """Get the prompt from scratch of every task, with all the patience a run has.

        Raises:
            ValueError: a task is unknown, or has no prompt that is short enough.
            RewardServerError: the server is not there.
        """
        for task_id in self._settings.tasks:
            self._scratch[task_id] = self._longest_scratch(task_id)

    def scratch(self, task_id: str) -> TrainerPrompt:
        """Return the prompt from scratch."""
        return self._scratch[task_id]

    def draw(self, wish: PromptRequest, seconds: float = FETCH_SECONDS) -> list[TrainerPrompt]:
        """Return as many prompts as are wanted, in this time, whatever the server does."""
        scratch = self._scratch[wish.task_id]
        if not self._settings.prompts.improve_fraction:
            return [scratch] * wish.count
        if not self._patience.may_ask():
            self.fallbacks += wish.count
            return [scratch] * wish.count
        try:
            drawn = self._draw(wish, time.monotonic() + seconds)
        except Exception as error:  # noqa: BLE001 - what is raised here would end the training run
            self._patience.failed(error)
            self.fallbacks += wish.count
            return [scratch] * wish.count
        self._patience.answered()
        self.fallbacks += drawn.count(None)
        return [prompt or scratch for prompt in drawn]

    def _draw(self, wish: PromptRequest, deadline: float) -> list[TrainerPrompt | None]:
        """Return prompts that fit, None for those that cannot be had short enough."""
        fraction = self._settings.prompts.improve_fraction
        drawn: list[TrainerPrompt | None] = [None] * wish.count
        open_places = list(range(wish.count))
        for attempt, share in enumerate(_SHARES):
            again = PromptRequest(wish.task_id, len(open_places), wish.seed + attempt, wish.step)
            try:
                found = self._ask(
                    again, 1.0 if attempt else fraction, self.yardstick.units(share), deadline
                )
            except RewardServerError:
                if not attempt:
                    raise
                break
            tokens = self._measure({prompt for prompt in found if prompt.kind == "improve"})
            for place, prompt in zip(open_places, found, strict=True):
                is_short = tokens.get(prompt, 0) <= self._most_tokens
                drawn[place] = prompt if is_short else None
            open_places = [place for place in open_places if drawn[place] is None]
            if not open_places:
                break
        # Those from scratch are all the same, and the one that is at hand is known to fit.
        scratch = self._scratch[wish.task_id]
        return [scratch if one is not None and one.kind == "scratch" else one for one in drawn]

    def _measure(self, prompts: Collection[TrainerPrompt]) -> dict[TrainerPrompt, int]:
        tokens = {prompt: self._count_tokens(prompt.chat()) for prompt in prompts}
        self.yardstick.learn([(prompt.characters, count) for prompt, count in tokens.items()])
        return tokens

    def _longest_scratch(self, task_id: str) -> TrainerPrompt:
        """Return the prompt from scratch that uses the room there is.

        Budgets are tried between those that are too small for the server and those that are too
        large for the model, first where the yardstick says.
        """
        best, low, high = None, 0, LARGEST_BUDGET
        why = "there is none"
        while high - low > max(1, high // 50):
            guess = self.yardstick.units(_MARGIN)
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
        self, wish: PromptRequest, fraction: float, units: int, deadline: float
    ) -> list[TrainerPrompt]:
        settings = self._settings
        wanted = {
            "run_id": settings.run_id,
            "n": wish.count,
            "improve_fraction": fraction,
            "strategy": settings.prompts.strategy,
            "scope": settings.prompts.scope,
            "parents": settings.prompts.parents,
            "seed": wish.seed,
            "step": wish.step,
            "wall_seconds": settings.wall_seconds,
            "budget": self.yardstick.budget(units),
        }
        if self._client is None:
            self._client = settings.client()
        left = max(0.001, deadline - time.monotonic())
        reply = self._client.prompts(wish.task_id, deadline_seconds=left, **wanted)
        prompts = _Reply.model_validate(reply).prompts
        if len(prompts) != wish.count:
            message = f"{len(prompts)} prompts came back for {wish.count}"
            raise ValueError(message)
        return prompts


def endless(settings: RunSettings, most_characters: int) -> Iterator[tuple[str, TrainerPrompt]]:
    """Yield tasks in turn, each with a prompt, for trainers that count neither tokens nor steps.

    Once there is a first, a server that is away does not end them.

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
