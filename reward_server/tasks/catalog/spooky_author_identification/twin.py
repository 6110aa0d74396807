"""Made-up sentences of three made-up authors, under Kaggle's names and columns.

An author prefers some nouns and verbs (which counts of words show), some endings of words,
whatever the word (which parts of words show), and some punctuation (which only characters
show): the closer a model looks, the better it gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reward_server.tasks.sdk.raw import write_zip
from reward_server.tasks.sdk.words import WordLists

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

AUTHORS = ("EAP", "HPL", "MWS")
SHARES = (0.40, 0.29, 0.31)
WORDS = WordLists(__file__)

Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Author:
    """How likely an author is to choose each word, ending and sign."""

    nouns: Weights
    verbs: Weights
    endings: Weights
    joints: Weights


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.zip with a train.csv of `rows` sentences."""
    rng = np.random.default_rng(seed)
    authors = dict(zip(AUTHORS, _authors(rng), strict=True))
    names = rng.choice(AUTHORS, rows, p=SHARES)
    table = pd.DataFrame(
        {
            "id": [f"id{number:05d}" for number in rng.permutation(99_999)[:rows]],
            "text": [_text(rng, authors[name]) for name in names],
            "author": names,
        }
    )
    write_zip(raw / "train.zip", [("train.csv", table.to_csv(index=False).encode())])


def _authors(rng: np.random.Generator) -> list[Author]:
    nouns, verbs = _preferences(rng, WORDS.nouns, 0.4), _preferences(rng, WORDS.verbs, 0.35)
    endings, joints = _preferences(rng, WORDS.endings, 1.1), _preferences(rng, WORDS.joints, 1.3)
    return [Author(*weights) for weights in zip(nouns, verbs, endings, joints, strict=True)]


def _preferences(rng: np.random.Generator, choices: Sequence[str], strength: float) -> Weights:
    """Return a row of chances per author, as far apart for any two authors as for the others."""
    angles = 2 * np.pi * rng.permutation(len(choices)) / len(choices)
    phases = 2 * np.pi * np.arange(len(AUTHORS)) / len(AUTHORS)
    weights = np.exp(strength * np.cos(angles + phases[:, None]))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _text(rng: np.random.Generator, author: Author) -> str:
    clauses = [_clause(rng, author) for _ in range(rng.integers(1, 4))]
    text = str(rng.choice(WORDS.openers)) + clauses[0]
    for clause in clauses[1:]:
        text += f"{rng.choice(WORDS.joints, p=author.joints)} {clause}"
    return text[0].upper() + text[1:] + "."


def _clause(rng: np.random.Generator, author: Author) -> str:
    first, second = rng.choice(WORDS.nouns, 2, p=author.nouns)
    stems, endings = rng.choice(WORDS.stems, 2), rng.choice(WORDS.endings, 2, p=author.endings)
    verb, place = rng.choice(WORDS.verbs, p=author.verbs), rng.choice(WORDS.places)
    subject = rng.choice(WORDS.subjects)
    return (
        f"{subject} {verb} the {stems[0]}{endings[0]} {first} "
        f"{place} a {stems[1]}{endings[1]} {second}"
    )
