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

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SENTENCES = (
    "{link}{people} {think} that the {noun} is {adjective}.",
    "{link}the {noun} could {act} the {other} in a {adjective} way.",
    "{link}it is {adjective} to {act} the {noun}.",
    "{link}I {think} that {people} should {act} their {noun}.",
    "{link}one {adjective} reason is that the {noun} would {act} the {other}.",
    "{link}nobody can {act} the {noun} without a {adjective} {other}.",
    "{link}the article says that {percent} percent of {people} {act} the {noun} every year.",
    "{link}when {people} {act} the {noun}, the {other} becomes {adjective}.",
    "{link}some {people} {think} the opposite, but the {noun} doesn't {act} anyone.",
    "{link}a {adjective} {noun} would be enough to {act} the {other}.",
    "{link}my {other} was {adjective}, and I {think} that is why we should {act} the {noun}.",
    "{link}in the passage the author tries to {act} the {noun} with a {adjective} {other}.",
)
TOPICS = (
    ("garden", "school", "lunch", "teacher", "harvest", "playground", "budget", "kitchen"),
    ("bus", "city", "driver", "route", "ticket", "traffic", "station", "neighbourhood"),
    ("robot", "classroom", "lesson", "homework", "computer", "exam", "library", "tablet"),
    ("planet", "mission", "rocket", "telescope", "astronaut", "atmosphere", "surface", "crater"),
    ("election", "vote", "state", "president", "campaign", "result", "law", "candidate"),
    ("river", "forest", "bridge", "farm", "village", "storm", "harbour", "valley"),
    ("museum", "painting", "visitor", "guide", "statue", "exhibition", "tour", "collection"),
)
PEOPLE = (
    "people", "students", "parents", "teachers", "experts", "citizens", "neighbours", "children",
    "scientists", "drivers", "readers", "voters", "workers", "families",
)  # fmt: skip
THINK = (
    "think", "believe", "say", "argue", "claim", "insist", "suggest", "admit", "feel", "notice",
    "contend", "realise", "agree", "hope", "know", "guess", "assume", "maintain", "conclude",
    "explain",
)  # fmt: skip
ACT = (
    "help", "change", "improve", "affect", "support", "transform", "strengthen", "ruin", "fix",
    "protect", "replace", "enjoy", "share", "question", "understand", "organise", "use", "build",
    "defend", "weaken", "finance", "repair", "explore", "ignore", "keep", "examine", "celebrate",
    "challenge", "make", "promote",
)  # fmt: skip
ADJECTIVES = (
    "good", "bad", "nice", "big", "important", "essential", "beneficial", "remarkable", "cool",
    "great", "small", "useful", "valuable", "fun", "crucial", "significant", "weird", "simple",
    "sustainable", "reliable", "boring", "practical", "controversial", "easy", "hard", "clear",
    "plausible", "awesome", "reasonable", "fair", "complicated", "convincing", "happy", "costly",
    "effective", "normal", "ambitious", "strange", "thorough", "real",
)  # fmt: skip
LINKS = (
    "Also, ", "So ", "And then ", "However, ", "Moreover, ", "Because of this, ", "In addition, ",
    "First of all, ", "Like I said, ", "On the other hand, ", "For example, ", "Therefore, ",
    "Plus ", "As a result, ", "But ", "To begin with, ", "In my opinion, ", "Nevertheless, ",
    "Basically ", "Consequently, ",
)  # fmt: skip
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
    taste = Taste(*(_preferences(rng, words) for words in (THINK, ACT, ADJECTIVES, LINKS)))
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
    patterns = _choose(rng, SENTENCES, count)
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
    chosen = _choose(rng, LINKS, count, 0.8 * links * taste.links)
    return {
        "think": _choose(rng, THINK, count, 0.8 * vocabulary * taste.think),
        "act": _choose(rng, ACT, count, 0.8 * vocabulary * taste.act),
        "adjective": _choose(rng, ADJECTIVES, count, 0.8 * vocabulary * taste.adjectives),
        "link": [link if use else "" for link, use in zip(chosen, linked, strict=True)],
        "people": _choose(rng, PEOPLE, count),
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
