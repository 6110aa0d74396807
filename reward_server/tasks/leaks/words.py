"""Does the text of a column hold the label: by its own name or number, or as a mark?

A word that is commoner with one label is what a model learns from. A leak is a word that
settles the label of a good part of the rows, one that only the test file has, or the row's
own label as such.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from reward_server.tasks.base import TargetKind
from reward_server.tasks.leaks.report import LeakFinding, LeakKind
from reward_server.tasks.leaks.strength import ALPHA, FEWEST_ROWS, Strength

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from reward_server.tasks.leaks.columns import Found
    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.strength import Codes, Labels

_MOST_WORDS = 4_000
_MOST_LETTERS = 5_000
_SHUFFLES = 8
_TELLING = 0.5
_SHARE_OF_LABEL = 0.25
_PURE = 0.98
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")


def find_in_texts(
    place: str, texts: pd.Series, labels: tuple[Labels, ...], train: pd.Series | None
) -> Iterator[Found]:
    """Yield what single words and letters of a text column tell about the labels."""
    words = [_marks(text) for text in texts.tolist()]
    known = None if train is None else [_marks(text) for text in train.tolist()]
    for target in labels:
        if target.classes and target.known.sum() >= FEWEST_ROWS:
            yield from _find_words(place, words, target, known)


def _marks(text: str) -> set[str]:
    """Return the words and the letters of a text."""
    part = text[-_MOST_LETTERS:]
    return {*part.split(), *part}


def _find_words(
    place: str, words: list[set[str]], labels: Labels, train: list[set[str]] | None
) -> Iterator[Found]:
    rows = np.flatnonzero(labels.known)
    counts = Counter(word for row in rows for word in words[row])
    common = [w for w, n in counts.most_common(_MOST_WORDS) if 5 <= n < len(rows)]
    number = {word: place for place, word in enumerate(common)}
    table = np.zeros((len(common), labels.classes))
    for row, code in zip(rows, labels.codes[rows], strict=True):
        table[[number[word] for word in words[row] if word in number], code] += 1
    totals = np.bincount(labels.codes[rows], minlength=labels.classes).astype(np.float64)
    shares = totals / len(rows)
    hits = table.max(axis=1, initial=0) + (totals - table).max(axis=1, initial=0)
    skill = (hits / len(rows) - shares.max()) / max(1 - shares.max(), 1e-9)
    for found in skill[skill >= _TELLING]:
        strength = Strength(float(found), 0.0, len(rows))
        text = "one word or letter of it tells the label"
        yield strength.skill, LeakFinding(LeakKind.TELLING_COLUMN, place, text, strength.text)
    for index, code in _pure_words(table, totals):
        share = table[index, code] / totals[code]
        is_new = train is not None and _is_new(common[index], table[index].sum() / len(rows), train)
        if share >= _SHARE_OF_LABEL or is_new:
            text = "a word or letter of it occurs with one label alone"
            text += ", and hardly ever in the train file" if is_new else ""
            told = f"{share:.0%} of the rows of one label"
            yield 0.5, LeakFinding(LeakKind.PARTLY_TELLING, place, text, told)


def _pure_words(table: np.ndarray, totals: np.ndarray) -> Iterator[tuple[int, int]]:
    sizes = table.sum(axis=1)
    chance = stats.binom.sf(table - 1, sizes[:, None], totals / totals.sum())
    found = (chance < ALPHA / max(table.size, 1)) & (table >= _PURE * sizes[:, None])
    for index, code in zip(*np.nonzero(found), strict=True):
        yield int(index), int(code)


def _is_new(word: str, rate: float, train: list[set[str]]) -> bool:
    known = sum(word in words for words in train)
    return bool(known < rate * len(train) / 4)


def names_of(evidence: LeakEvidence, rows: Codes) -> Iterator[list[str]]:
    """Yield the labels of rows as words or numbers that are telling when they stand somewhere."""
    target, truth = evidence.target, evidence.truth.iloc[rows]
    if len(target.columns) > 1 and target.kind is not TargetKind.NUMBERS:
        for labels in evidence.labels[:1]:
            yield [target.columns[code].lower() for code in labels.take(rows).codes]
        return
    for name in target.columns:
        own = [value.strip().lower() for value in truth[name].tolist()]
        if len(set(own)) > 20 or not all(value.replace(".", "").isdigit() for value in set(own)):
            yield own


def find_own_labels(place: str, texts: pd.Series, names: Sequence[str]) -> Iterator[Found]:
    """Yield whether texts hold their own row's label far more often than another row's."""
    words = [_pieces(text[:_MOST_LETTERS]) for text in texts.tolist()]
    own = sum(name in pieces for name, pieces in zip(names, words, strict=True) if name)
    expected, rng = 0.0, np.random.default_rng(0)
    for _ in range(_SHUFFLES):
        others = rng.permutation(np.array(names, dtype=object))
        expected += sum(x in pieces for x, pieces in zip(others, words, strict=True) if x)
    expected = (expected + 1) / _SHUFFLES
    is_frequent = own > 0.02 * len(names) and own > 2 * expected
    if is_frequent and stats.poisson.sf(own - 1, expected) < ALPHA:
        share = own / len(names)
        told = f"{share:.0%} of the rows, {expected / len(names):.0%} by chance"
        text = "the row's own label stands in it"
        yield share, LeakFinding(LeakKind.TELLING_COLUMN, place, text, told)


def _pieces(text: str) -> set[str]:
    lower = text.lower()
    plain = re.split(r"[^\w.+-]+", lower)
    words = {*lower.split(), *plain, *re.split(r"\W+", lower), *_NUMBERS.findall(lower)}
    return {lower.strip(), *words} - {""}
