"""Measuring prompts: by their characters, or by the tokens of a model's own tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from reward_server.prompts.chat_markers import Markers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.prompts.values import Messages

_USUAL = Markers()


class TokenCounter(Protocol):
    """Measures prompts in one unit.

    `characters_each` is about how many characters a unit has at the least in what programs
    print, and `most_characters_each` at the most in programs: a longer one is not even looked
    at. Without `takes_system` a chat has no system message.
    """

    @property
    def name(self) -> str:
        """Return what tells this gauge from others."""

    @property
    def unit(self) -> str:
        """Return what is counted."""

    characters_each: float
    most_characters_each: float
    takes_system: bool
    markers: Markers

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
    markers = _USUAL

    def measure(self, prompts: Sequence[Messages]) -> list[int]:
        """Return the sizes of whole prompts."""
        return [sum(len(message.content) for message in prompt) for prompt in prompts]

    def measure_texts(self, texts: Sequence[str]) -> list[int]:
        """Return how much each text adds to a prompt."""
        return list(map(len, texts))
