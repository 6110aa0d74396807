"""Made-up student essays of graded quality, under Kaggle's names and columns.

Better writers write more (which one number shows), prefer some words and links of sentences
over others (which counts of words show; which ones is drawn anew for every twin), and slip
less in spelling (which shows in rare words).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reward_server.tasks.sdk.words import WordLists

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WORDS = WordLists(__file__)
TOPICS = tuple(WORDS.groups("topics").values())
SHARES = (0.072, 0.273, 0.363, 0.227, 0.056, 0.009)
_LINKED_SHARE = 0.6
_SLIP_LETTERS = 4

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Writers:
    """What each writer is able to do, as standard normal numbers."""

    length: Numbers
    vocabulary: Numbers
    links: Numbers
    spelling: Numbers


@dataclass(frozen=True, slots=True)
class Taste:
    """Which words and links good writers prefer, and how much."""

    think: Numbers
    act: Numbers
    adjectives: Numbers
    links: Numbers


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv with `rows` essays."""
    rng = np.random.default_rng(seed)
    writers = Writers(*rng.normal(size=(4, rows)))
    taste = Taste(
        *(
            _preferences(rng, words)
            for words in (WORDS.think, WORDS.act, WORDS.adjectives, WORDS.links)
        )
    )
    table = pd.DataFrame(
        {
            "essay_id": [f"{n:07x}" for n in rng.choice(16**7, rows, replace=False)],
            "full_text": [_essay(rng, writers, writer, taste) for writer in range(rows)],
            "score": _scores(rng, writers),
        }
    )
    table.to_csv(raw / "train.csv", index=False)


def _preferences(rng: np.random.Generator, words: Sequence[str]) -> Numbers:
    return rng.permutation(np.linspace(-1.7, 1.7, len(words)))


def _scores(rng: np.random.Generator, writers: Writers) -> NDArray[np.intp]:
    """Grade all essays, at fixed shares of the six scores."""
    weights = np.array([0.6, 0.55, 0.35, 0.45]) * rng.uniform(0.9, 1.1, 4)
    abilities = np.stack([writers.length, writers.vocabulary, writers.links, writers.spelling])
    quality = weights @ abilities + 0.3 * rng.normal(size=abilities.shape[1])
    marks = np.quantile(quality, np.cumsum(SHARES)[:-1])
    return np.searchsorted(marks, quality) + 1


def _essay(rng: np.random.Generator, writers: Writers, writer: int, taste: Taste) -> str:
    count = int(np.clip(np.exp(2.6 + 0.35 * writers.length[writer] + rng.normal(0, 0.1)), 4, 60))
    words = _words(rng, count, writers.vocabulary[writer], writers.links[writer], taste)
    patterns = _choose(rng, WORDS.sentences, count)
    rows = zip(*words.values(), strict=True)
    sentences = [
        pattern.format(**dict(zip(words, row, strict=True)))
        for pattern, row in zip(patterns, rows, strict=True)
    ]
    slips = 0.03 * np.exp(-0.8 * writers.spelling[writer])
    return _misspell(rng, _paragraphs(rng, sentences), slips)


def _words(
    rng: np.random.Generator, count: int, vocabulary: float, links: float, taste: Taste
) -> dict[str, list[str]]:
    """Choose what goes into each of the sentences of one essay."""
    topic = TOPICS[int(rng.integers(0, len(TOPICS)))]
    linked = (rng.random(count) < _LINKED_SHARE).tolist()
    chosen = _choose(rng, WORDS.links, count, 0.8 * links * taste.links)
    return {
        "think": _choose(rng, WORDS.think, count, 0.8 * vocabulary * taste.think),
        "act": _choose(rng, WORDS.act, count, 0.8 * vocabulary * taste.act),
        "adjective": _choose(rng, WORDS.adjectives, count, 0.8 * vocabulary * taste.adjectives),
        "link": [link if use else "" for link, use in zip(chosen, linked, strict=True)],
        "people": _choose(rng, WORDS.people, count),
        "noun": _choose(rng, topic, count),
        "other": _choose(rng, topic, count),
        "percent": [str(number) for number in rng.integers(5, 96, count)],
    }


def _choose(
    rng: np.random.Generator, words: Sequence[str], count: int, leaning: Numbers | None = None
) -> list[str]:
    weights = np.ones(len(words)) if leaning is None else np.exp(leaning)
    bounds = np.cumsum(weights)
    places = np.searchsorted(bounds, bounds[-1] * rng.random(count), side="right")
    return [words[place] for place in np.minimum(places, len(words) - 1)]


def _paragraphs(rng: np.random.Generator, sentences: Sequence[str]) -> str:
    breaks = rng.random(len(sentences)) < 0.2
    ends = np.where(breaks, "\n\n", " ").tolist()
    ends[-1] = ""
    return "".join(s[0].upper() + s[1:] + end for s, end in zip(sentences, ends, strict=True))


def _misspell(rng: np.random.Generator, text: str, share: float) -> str:
    """Swap, drop or double a letter in a share of the longer words."""
    words = text.split(" ")
    for place in np.flatnonzero(rng.random(len(words)) < share):
        word = words[place]
        if len(word) > _SLIP_LETTERS and word.isalpha():
            at, kind = int(rng.integers(1, len(word) - 1)), int(rng.integers(0, 3))
            middle = (word[at + 1] + word[at], "", word[at] * 2)[kind]
            words[place] = word[:at] + middle + word[at + (2 if kind == 0 else 1) :]
    return " ".join(words)
