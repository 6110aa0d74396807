"""The words of a made-up dataset, from the `words.toml` beside its `twin.py`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


class WordLists:
    """The lists of the file beside a twin, whose `__file__` is given; each is an attribute."""

    def __init__(self, twin: str) -> None:
        text = Path(twin).with_name("words.toml").read_text(encoding="utf-8")
        self._lists = tomllib.loads(text)

    def __getattr__(self, name: str) -> tuple[str, ...]:
        """Return one list."""
        return tuple(self._lists[name])

    def groups(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return the lists of one table of the file under their headings."""
        return {heading: tuple(words) for heading, words in self._lists[name].items()}


def pick(rng: np.random.Generator, words: Sequence[str]) -> str:
    """Return a random one of the words."""
    return words[int(rng.integers(0, len(words)))]
