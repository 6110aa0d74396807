"""Made-up tweets with the words that carry their sentiment, under Kaggle's names and columns.

A tweet may hold feelings of both kinds; marked is the strongest of the tweet's own sentiment.
How strong each word is, and which words beside it the annotators mark along with it, is drawn
anew for every twin. Neutral tweets are marked whole, as Kaggle's mostly are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from reward_server.tasks.sdk.words import WordLists, pick

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WORDS = WordLists(__file__)
FEELINGS = WORDS.groups("feelings")
SENTIMENTS = ("neutral", "positive", "negative")
SHARES = (0.405, 0.312, 0.283)
_SPARE_SHARE = 0.08
OPPOSITE = {"positive": "negative", "negative": "positive"}


@dataclass(frozen=True, slots=True)
class Habits:
    """What the annotators of one twin do: how they rank feelings, which neighbours they mark."""

    strength: Mapping[str, float]
    marked: frozenset[str]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Habits:
        """Draw a rank for every feeling and half of the neighbours."""
        words = [word for words in FEELINGS.values() for word in words]
        halves = [
            rng.permutation(side)[: len(side) // 2].tolist() for side in (WORDS.before, WORDS.after)
        ]
        return cls(
            dict(zip(words, rng.permutation(len(words)).tolist(), strict=True)),
            frozenset(word for half in halves for word in half),
        )


@dataclass(frozen=True, slots=True)
class Feeling:
    """A few words about how someone feels, and the part of them that would be marked."""

    kind: str
    text: str
    span: str
    strength: float


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv with `rows` tweets; one of them has no text, as in Kaggle's."""
    rng = np.random.default_rng(seed)
    table = _tweets(rng, rows)
    table.insert(0, "textID", [f"{n:010x}" for n in rng.choice(16**10, rows, replace=False)])
    without_text = train_test_split(range(rows), test_size=0.1, random_state=0)[0][0]
    table.loc[without_text, ["text", "selected_text"]] = None
    table.loc[without_text, "sentiment"] = "neutral"
    table.to_csv(raw / "train.csv", index=False)


def _tweets(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Draw tweets of which no two have the same text."""
    habits = Habits.draw(rng)
    drawn = rows + int(_SPARE_SHARE * rows) + 10
    sentiments = [SENTIMENTS[i] for i in rng.choice(len(SENTIMENTS), drawn, p=SHARES)]
    tweets = [(*_tweet(rng, habits, sentiment), sentiment) for sentiment in sentiments]
    table = pd.DataFrame(tweets, columns=["text", "selected_text", "sentiment"])
    return table.drop_duplicates("text").iloc[:rows].reset_index(drop=True)


def _tweet(rng: np.random.Generator, habits: Habits, sentiment: str) -> tuple[str, str]:
    """Return a text and what an annotator marks in it."""
    feelings = [_feeling(rng, habits, kind) for kind in _kinds(rng, sentiment)]
    situations = max(1, int(rng.integers(2, 4)) - len(feelings) // 2)
    parts = [_filled(rng, pick(rng, WORDS.situations)) for _ in range(situations)]
    for feeling in feelings:
        parts.insert(int(rng.integers(0, len(parts) + 1)), feeling.text)
    text = parts[0]
    for part in parts[1:]:
        text += pick(rng, WORDS.joints) + part
    text += pick(rng, WORDS.ends)
    own = [feeling for feeling in feelings if feeling.kind == sentiment]
    marked = max(own, key=lambda feeling: feeling.strength).span if own else text
    return _spaced(rng, text), _strayed(rng, text, marked)


def _kinds(rng: np.random.Generator, sentiment: str) -> list[str]:
    if sentiment == "neutral":
        return [pick(rng, tuple(OPPOSITE))] if rng.random() < 0.3 else []
    kinds = [sentiment] * (2 if rng.random() < 0.4 else 1)
    return kinds + [OPPOSITE[sentiment]] * (rng.random() < 0.35)


def _feeling(rng: np.random.Generator, habits: Habits, kind: str) -> Feeling:
    word = pick(rng, FEELINGS[kind])
    before = pick(rng, WORDS.before) if rng.random() < 0.7 else ""
    after = pick(rng, WORDS.after) if rng.random() < 0.7 else ""
    leads = WORDS.personal_leads if word in WORDS.personal else WORDS.leads
    lead = _filled(rng, pick(rng, leads)) if rng.random() < 0.7 else ""
    marked = [before if before in habits.marked else "", word]
    marked += [after if after in habits.marked else ""]
    text = " ".join(filter(None, (lead, before, word, after)))
    return Feeling(kind, text, " ".join(filter(None, marked)), habits.strength[word])


def _filled(rng: np.random.Generator, pattern: str) -> str:
    town, kin, hour = pick(rng, WORDS.towns), pick(rng, WORDS.kin), pick(rng, WORDS.hours)
    return pattern.format(town=town, kin=kin, hour=hour, code=f"{rng.integers(16**5):05x}")


def _spaced(rng: np.random.Generator, text: str) -> str:
    return f" {text}" if rng.random() < 0.2 else text


def _strayed(rng: np.random.Generator, text: str, span: str) -> str:
    """Let an annotator now and then mark the whole tweet, or a little too much."""
    luck = rng.random()
    if luck < 0.05:
        return text
    if luck < 0.12:
        start = text.index(span)
        return text[max(0, start - 3) : start + len(span) + 4].strip()
    return span
