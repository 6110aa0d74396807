"""Which texts resemble a known one, though some words were changed?

A text is known by its runs of words. Runs that stand in many texts are phrases and tell
nothing; what counts is whether most of the others stand together in one known text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUN = 5
_MOST_WORDS = 300
_MOST_OWNERS = 20
_FEWEST_RUNS = 5
_SHARE = 0.8


class KnownTexts:
    """Texts that others are compared with."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._owners: dict[int, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for run in _runs(text):
                owners = self._owners[run]
                if len(owners) <= _MOST_OWNERS:
                    owners.append(number)

    def resembles(self, text: str, itself: int = -1) -> bool:
        """Tell whether most runs of a text stand in one known text other than itself."""
        shared: Counter[int] = Counter()
        runs = [run for run in _runs(text) if len(self._owners.get(run, ())) <= _MOST_OWNERS]
        for run in runs:
            shared.update(owner for owner in self._owners.get(run, ()) if owner != itself)
        most = max(shared.values(), default=0)
        return most >= max(_FEWEST_RUNS, _SHARE * len(runs))


def _runs(text: str) -> set[int]:
    words = text.split()[:_MOST_WORDS]
    return {hash(tuple(words[n : n + _RUN])) for n in range(len(words) - _RUN + 1)}
