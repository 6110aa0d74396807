"""Composes the prompts of one task within a budget: richest first, then with less.

A program is shown whole or not at all. Up to `_OUTPUT` of the remaining budget goes to what the
program printed, the rest to the briefing. Whole prompts are measured, never estimated: an
estimate only decides what to try first.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reward_server.errors import RequestError
from reward_server.model import ErrorKind
from reward_server.prompts.program_output import excerpt
from reward_server.prompts.prompt_types import Message
from reward_server.prompts.templates import improve_text, output_text, scratch_text, system_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from reward_server.prompts.prompt_types import Messages
    from reward_server.prompts.templates import Rules
    from reward_server.prompts.token_counters import TokenCounter
    from reward_server.store.solutions.parents import ParentBody

_OUTPUT = 0.4
_SHARES = (1.0, 0.8, 0.5, 0.2)
_LEAST_OUTPUT = 100
_SLACK = 8  # joining texts may add a few tokens


@dataclass(frozen=True, slots=True)
class BriefingLevels:
    """The briefings of one task, shortest first, and about how much each adds to a prompt."""

    texts: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, briefings: Iterable[str], counter: TokenCounter) -> BriefingLevels:
        """Escape special tokens in the briefings, and measure them."""
        texts = tuple(map(counter.special_tokens.escaped, briefings))
        sizes, largest = [], 0
        for size in counter.measure_texts(texts):
            largest = max(largest, size)
            sizes.append(largest)
        return cls(texts, tuple(sizes))

    def within(self, remaining: float) -> int:
        """Return the index of the longest briefing that fits, or the first."""
        return max(0, bisect_right(self.sizes, remaining) - 1)


@dataclass(frozen=True, slots=True)
class Composer:
    """Writes the prompts of one task within one budget."""

    counter: TokenCounter
    limit: int
    rules: Rules
    levels: BriefingLevels

    def scratch(self) -> Messages:
        """Return the prompt that asks for a first program.

        Raises:
            RequestError: `invalid_request` when the budget is too small for any prompt.
        """
        least = self._messages(scratch_text(self.levels.texts[1]))
        needed = self.counter.measure([least])[0]
        if needed > self.limit:
            message = (
                f"the budget of {self.limit:,} {self.counter.unit} is too small: the shortest "
                f"prompt of this task needs {needed:,}"
            )
            raise RequestError(ErrorKind.INVALID_REQUEST, message)
        at = self.levels.within(self.limit - needed + self.levels.sizes[1])
        for text in self.levels.texts[at:1:-1]:
            messages = self._messages(scratch_text(text))
            if self.counter.measure([messages])[0] <= self.limit:
                return messages
        return least

    def most_characters(self) -> int:
        """Return the length of the longest program that can fit."""
        return int(self.limit * self.counter.most_characters_each)

    def improve(self, parents: Sequence[ParentBody]) -> dict[UUID, Messages]:
        """Return the prompts that ask for better programs, for those parents that fit."""
        bare = [self._messages(self._ask(parent, 0, "")) for parent in parents]
        sizes = self.counter.measure(bare)
        fitting = list(zip(parents, bare, sizes, strict=True))
        found = {p.solution_id: prompt for p, prompt, size in fitting if size <= self.limit}
        incomplete = [(p, self.limit - size) for p, _, size in fitting if size < self.limit]
        for share in _SHARES:
            rich = self._with_extras([(p, remaining * share) for p, remaining in incomplete])
            fits = [size <= self.limit for size in self.counter.measure(rich)]
            found |= {
                p.solution_id: prompt
                for (p, _), prompt, fit in zip(incomplete, rich, fits, strict=True)
                if fit
            }
            incomplete = [one for one, fit in zip(incomplete, fits, strict=True) if not fit]
        return found

    def _with_extras(self, incomplete: Sequence[tuple[ParentBody, float]]) -> list[Messages]:
        """Add as much output and briefing as fits the remaining budget."""
        outputs = [self._output(parent, remaining) for parent, remaining in incomplete]
        sizes = self.counter.measure_texts(outputs)
        return [
            self._messages(self._ask(parent, self._level(remaining - size - _SLACK), output))
            for (parent, remaining), output, size in zip(incomplete, outputs, sizes, strict=True)
        ]

    def _level(self, remaining: float) -> int:
        return self.levels.within(remaining + self.levels.sizes[0])

    def _output(self, parent: ParentBody, remaining: float) -> str:
        most = int(remaining * _OUTPUT * self.counter.characters_each)
        if most < _LEAST_OUTPUT:
            return ""
        failed = parent.failure is not None
        text = excerpt(parent.stdout_tail, parent.stderr_tail, failed=failed, limit=most)
        return output_text(self.counter.special_tokens.escaped(text)) if text else ""

    def _ask(self, parent: ParentBody, level: int, output: str) -> str:
        return improve_text(self.levels.texts[level], parent, output, self.rules)

    def _messages(self, user: str) -> Messages:
        system = system_text(self.rules)
        if not self.counter.takes_system:
            return (Message("user", f"{system}\n\n{user}"),)
        return Message("system", system), Message("user", user)


def showable(parent: ParentBody, counter: TokenCounter) -> ParentBody | None:
    """Return a parent that can be shown; one whose code holds a special token cannot."""
    if counter.special_tokens.occur_in(parent.code):
        return None
    if parent.failure is None:
        return parent
    message = counter.special_tokens.escaped(parent.failure.message)
    return replace(parent, failure=replace(parent.failure, message=message))
