"""Measures prompts in characters, or in the tokens of a model's own tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from reward_server.prompts.special_tokens import SpecialTokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.prompts.prompt_types import Messages

_USUAL = SpecialTokens()


class TokenCounter(Protocol):
    """Measures prompts in one unit.

    `characters_each` is a low estimate of the characters per unit in program output.
    `most_characters_each` is a high one for programs: longer programs are not even tried.
    Without `takes_system` the chat has no system message.
    """

    @property
    def name(self) -> str:
        """Return the unique name of this counter."""

    @property
    def unit(self) -> str:
        """Return what is counted."""

    characters_each: float
    most_characters_each: float
    takes_system: bool
    special_tokens: SpecialTokens

    def measure(self, prompts: Sequence[Messages]) -> list[int]:
        """Return the sizes of whole prompts."""

    def measure_texts(self, texts: Sequence[str]) -> list[int]:
        """Return about how much each text adds to a prompt."""


class CharacterCounter:
    """Counts the characters of the contents of all messages."""

    name = "characters"
    unit = "characters"
    characters_each = 1.0
    most_characters_each = 1.0
    takes_system = True
    special_tokens = _USUAL

    def measure(self, prompts: Sequence[Messages]) -> list[int]:
        """Return the sizes of whole prompts."""
        return [sum(len(message.content) for message in prompt) for prompt in prompts]

    def measure_texts(self, texts: Sequence[str]) -> list[int]:
        """Return how much each text adds to a prompt."""
        return list(map(len, texts))
