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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FEELINGS = {
    "positive": (
        "happy", "lovely", "great", "awesome", "proud", "thankful", "excited", "sweet", "fun",
        "amazing", "brilliant", "cheerful", "cosy", "delicious", "good", "glad", "perfect",
        "wonderful", "pretty", "beautiful", "relaxed", "hopeful", "funny", "cool", "nice",
        "pleased", "fabulous", "refreshing", "charming", "blessed",
    ),
    "negative": (
        "sad", "tired", "awful", "bored", "sick", "lonely", "angry", "cold", "terrible", "sore",
        "horrible", "jealous", "worried", "annoying", "bad", "nervous", "gutted", "upset",
        "painful", "rubbish", "miserable", "dull", "stressed", "grumpy", "hungry", "scared",
        "disappointed", "exhausted", "lost", "ugly",
    ),
}  # fmt: skip
BEFORE = (
    "so", "really", "very", "such a", "just", "kinda", "super", "pretty much", "soooo", "totally",
    "a bit", "feeling", "still", "too", "quite", "honestly",
)  # fmt: skip
AFTER = (
    "today", "right now", "about it", "again", "tonight", "for once", "this morning", ":)", ":(",
    "as always", "for sure", "at the moment", "now", "indeed", "haha", "lol",
)  # fmt: skip
PERSONAL = frozenset(
    (
        "happy", "proud", "thankful", "excited", "cheerful", "glad", "relaxed", "hopeful",
        "pleased", "blessed", "sad", "tired", "bored", "sick", "lonely", "angry", "cold", "sore",
        "jealous", "worried", "nervous", "gutted", "upset", "stressed", "grumpy", "hungry",
        "scared", "disappointed", "exhausted", "lost",
    )
)  # fmt: skip
LEADS = ("this is", "it was", "everything is", "my day was", "that was", "the food is")
PERSONAL_LEADS = ("i am", "im", "we are", "my {kin} is", "i was", "everyone is")
SITUATIONS = (
    "just got home from work", "watching the game with my {kin}", "on the bus to town",
    "the shop is closed until monday", "my phone has no signal", "we had pizza for dinner",
    "listening to the new album", "going to bed soon", "the train left at {hour}",
    "reading a book in the garden", "waiting for the rain to stop", "making tea for my {kin}",
    "back to school tomorrow", "i can`t find my keys", "the dog is asleep on the sofa",
    "check out http://twitpic.com/{code}", "moving house next week", "he didn`t call yet",
    "my {kin} is visiting", "cleaning my room", "the movie starts at {hour}",
    "on my way to the dentist", "its raining in {town}", "off to {town} for the weekend",
    "talking to an old friend", "the exam is on friday", "painting the kitchen, finally",
    "trying a new recipe", "got my hair cut", "following you back", "up since {hour}",
    "writing an essay about bees", "the car needs petrol", "there is a queue outside",
    "my {kin} made soup", "packing for {town}", "uploading the pictures", "who is awake",
)  # fmt: skip
TOWNS = ("Leeds", "Austin", "Perth", "Dublin", "Oslo", "Boston", "Manila", "Cardiff", "Toronto")
KIN = ("sister", "brother", "mum", "dad", "cousin", "neighbour", "roommate", "aunt", "teacher")
HOURS = ("five", "six", "seven", "eight", "nine", "ten", "noon", "midnight")
JOINTS = (". ", "... ", ", ", " - ", "! ", " and ", "; ", "  ")
ENDS = ("", "", ".", "!", "...", "!!", " xx")
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
        halves = [rng.permutation(side)[: len(side) // 2].tolist() for side in (BEFORE, AFTER)]
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
    parts = [_filled(rng, _pick(rng, SITUATIONS)) for _ in range(situations)]
    for feeling in feelings:
        parts.insert(int(rng.integers(0, len(parts) + 1)), feeling.text)
    text = parts[0]
    for part in parts[1:]:
        text += _pick(rng, JOINTS) + part
    text += _pick(rng, ENDS)
    own = [feeling for feeling in feelings if feeling.kind == sentiment]
    marked = max(own, key=lambda feeling: feeling.strength).span if own else text
    return _spaced(rng, text), _strayed(rng, text, marked)


def _kinds(rng: np.random.Generator, sentiment: str) -> list[str]:
    if sentiment == "neutral":
        return [_pick(rng, tuple(OPPOSITE))] if rng.random() < 0.3 else []
    kinds = [sentiment] * (2 if rng.random() < 0.4 else 1)
    return kinds + [OPPOSITE[sentiment]] * (rng.random() < 0.35)


def _feeling(rng: np.random.Generator, habits: Habits, kind: str) -> Feeling:
    word = _pick(rng, FEELINGS[kind])
    before = _pick(rng, BEFORE) if rng.random() < 0.7 else ""
    after = _pick(rng, AFTER) if rng.random() < 0.7 else ""
    leads = PERSONAL_LEADS if word in PERSONAL else LEADS
    lead = _filled(rng, _pick(rng, leads)) if rng.random() < 0.7 else ""
    marked = [before if before in habits.marked else "", word]
    marked += [after if after in habits.marked else ""]
    text = " ".join(filter(None, (lead, before, word, after)))
    return Feeling(kind, text, " ".join(filter(None, marked)), habits.strength[word])


def _filled(rng: np.random.Generator, pattern: str) -> str:
    town, kin, hour = _pick(rng, TOWNS), _pick(rng, KIN), _pick(rng, HOURS)
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


def _pick(rng: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(rng.integers(0, len(choices)))]
