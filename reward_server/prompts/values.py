"""What is asked for and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from uuid import UUID

    from reward_server.model import PromptKind


class Strategy(StrEnum):
    """How parents are chosen.

    `previous_step` draws evenly from the run's step before; `best` evenly from the few best
    programs; `softmax` prefers the better ones by their reward; `diverse` goes round the
    families of models, in each from the best on.
    """

    PREVIOUS_STEP = "previous_step"
    BEST = "best"
    SOFTMAX = "softmax"
    DIVERSE = "diverse"


@dataclass(frozen=True, slots=True)
class CharacterBudget:
    """The contents of all messages have at most so many characters."""

    characters: int


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The whole prompt, as the model's chat template renders it, has at most so many tokens."""

    tokens: int
    tokenizer: str


Budget: TypeAlias = CharacterBudget | TokenBudget


@dataclass(frozen=True, slots=True)
class PromptQuery:
    """Which prompts are asked for; what is `None` is as the settings say.

    With `parent_ids` nothing is drawn: one prompt is made for each of these solutions.
    """

    task_id: str
    run_id: str
    count: int
    improve_fraction: float = 0.5
    strategy: Strategy = Strategy.PREVIOUS_STEP
    seed: int | None = None
    budget: Budget | None = None
    step: int | None = None
    wall_seconds: float | None = None
    failed_too: bool | None = None
    temperature: float | None = None
    of_all_runs: bool = False
    parent_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: str
    content: str


Messages: TypeAlias = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked; `fallback` says why there is no parent where one was drawn for."""

    kind: PromptKind
    messages: Messages
    parent_id: UUID | None = None
    fallback: str | None = None
