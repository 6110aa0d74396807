"""Prompts of one task that keep a budget: everything is tried at its richest, then with less.

A program is shown whole or not at all. What is left beside it goes to what it printed, `_OUTPUT`
of it at the most, and the rest to the briefing. Whole prompts are measured, never estimated: an
estimate only says what to try first.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reward_server.errors import RequestError
from reward_server.model import ErrorKind
from reward_server.prompts.program_output import told
from reward_server.prompts.values import Message
from reward_server.prompts.wording import improve_text, output_text, scratch_text, system_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from reward_server.prompts.counters import TokenCounter
    from reward_server.prompts.values import Messages
    from reward_server.prompts.wording import Rules
    from reward_server.store.solutions.parents import ParentBody

_OUTPUT = 0.4
_SHARES = (1.0, 0.8, 0.5, 0.2)
_LEAST_OUTPUT = 100
_SLACK = 8  # what texts may grow by where they are joined


@dataclass(frozen=True, slots=True)
class BriefingLevels:
    """The briefings of one task, from the shortest on, and about how much each adds."""

    texts: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, briefings: Iterable[str], gauge: TokenCounter) -> BriefingLevels:
        """Measure briefings, in which no marker may stand."""
        texts = tuple(map(gauge.markers.broken, briefings))
        sizes, largest = [], 0
        for size in gauge.measure_texts(texts):
            largest = max(largest, size)
            sizes.append(largest)
        return cls(texts, tuple(sizes))

    def within(self, room: float) -> int:
        """Return the longest that has room, or the first."""
        return max(0, bisect_right(self.sizes, room) - 1)


@dataclass(frozen=True, slots=True)
class Composer:
    """Writes the prompts of one task within one budget."""

    gauge: TokenCounter
    limit: int
    rules: Rules
    system: str
    rungs: BriefingLevels

    @classmethod
    def of(cls, gauge: TokenCounter, limit: int, rules: Rules, rungs: BriefingLevels) -> Composer:
        """Return a composer with the system message of these rules."""
        return cls(gauge, limit, rules, system_text(rules), rungs)

    def scratch(self) -> Messages:
        """Return the prompt that asks for a first program.

        Raises:
            RequestError: `invalid_request` when the budget is too small for any prompt.
        """
        least = self._messages(scratch_text(self.rungs.texts[1]))
        needed = self.gauge.measure([least])[0]
        if needed > self.limit:
            message = (
                f"the budget of {self.limit:,} {self.gauge.unit} is too small: the shortest prompt "
                f"of this task needs {needed:,}"
            )
            raise RequestError(ErrorKind.INVALID_REQUEST, message)
        at = self.rungs.within(self.limit - needed + self.rungs.sizes[1])
        for text in self.rungs.texts[at:1:-1]:
            messages = self._messages(scratch_text(text))
            if self.gauge.measure([messages])[0] <= self.limit:
                return messages
        return least

    def most_characters(self) -> int:
        """Return the length of the longest program that it makes sense to look at."""
        return int(self.limit * self.gauge.most_characters_each)

    def improve(self, parents: Sequence[ParentBody]) -> dict[UUID, Messages]:
        """Return the prompts that ask for better programs, for those parents that have room."""
        bare = [self._messages(self._ask(parent, 0, "")) for parent in parents]
        sizes = self.gauge.measure(bare)
        fitting = list(zip(parents, bare, sizes, strict=True))
        found = {p.solution_id: prompt for p, prompt, size in fitting if size <= self.limit}
        poor = [(p, self.limit - size) for p, _, size in fitting if size < self.limit]
        for share in _SHARES:
            rich = self._enrich([(p, room * share) for p, room in poor])
            fits = [size <= self.limit for size in self.gauge.measure(rich)]
            found |= {
                p.solution_id: prompt
                for (p, _), prompt, fit in zip(poor, rich, fits, strict=True)
                if fit
            }
            poor = [one for one, fit in zip(poor, fits, strict=True) if not fit]
        return found

    def _enrich(self, poor: Sequence[tuple[ParentBody, float]]) -> list[Messages]:
        """Ask with as much output and briefing as there is room for."""
        outputs = [self._output(parent, room) for parent, room in poor]
        sizes = self.gauge.measure_texts(outputs)
        return [
            self._messages(self._ask(parent, self._rung(room - size - _SLACK), output))
            for (parent, room), output, size in zip(poor, outputs, sizes, strict=True)
        ]

    def _rung(self, room: float) -> int:
        return self.rungs.within(room + self.rungs.sizes[0])

    def _output(self, parent: ParentBody, room: float) -> str:
        most = int(room * _OUTPUT * self.gauge.characters_each)
        if most < _LEAST_OUTPUT:
            return ""
        failed = parent.failure is not None
        text = told(parent.stdout_tail, parent.stderr_tail, failed=failed, room=most)
        return output_text(self.gauge.markers.broken(text)) if text else ""

    def _ask(self, parent: ParentBody, rung: int, output: str) -> str:
        return improve_text(self.rungs.texts[rung], parent, output, self.rules)

    def _messages(self, user: str) -> Messages:
        if not self.gauge.takes_system:
            return (Message("user", f"{self.system}\n\n{user}"),)
        return Message("system", self.system), Message("user", user)


def showable(parent: ParentBody, gauge: TokenCounter) -> ParentBody | None:
    """Return a parent that can be shown: none whose program holds a chat marker."""
    if gauge.markers.are_in(parent.code):
        return None
    if parent.failure is None:
        return parent
    message = gauge.markers.broken(parent.failure.message)
    return replace(parent, failure=replace(parent.failure, message=message))
