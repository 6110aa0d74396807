"""A query for prompts, and the prompts that answer it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from uuid import UUID

    from reward_server.model import PromptKind


class Strategy(StrEnum):
    """How parents are chosen.

    `previous_step` draws uniformly from the run's previous step; `best` uniformly from the few
    best programs; `softmax` weights programs by their reward; `diverse` alternates between
    the families of models, best first within each.
    """

    PREVIOUS_STEP = "previous_step"
    BEST = "best"
    SOFTMAX = "softmax"
    DIVERSE = "diverse"


@dataclass(frozen=True, slots=True)
class CharacterBudget:
    """A limit on the characters of all messages together."""

    characters: int


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """A limit on the tokens of the whole prompt, as the model's chat template renders it."""

    tokens: int
    tokenizer: str


Budget: TypeAlias = CharacterBudget | TokenBudget


@dataclass(frozen=True, slots=True)
class PromptQuery:
    """The requested prompts; a field that is `None` takes its value from the settings.

    With `parent_ids` nothing is drawn: each of these solutions gets one prompt.
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
    """A prompt for the model; `fallback` says why it has no parent although one was due."""

    kind: PromptKind
    messages: Messages
    parent_id: UUID | None = None
    fallback: str | None = None
