"""How well something public tells the labels, and how likely chance alone would do as well.

Everything is judged by prediction: a row's label is guessed from other rows that share its
value (`by_groups`) or stand next to it in an order (`by_neighbours`), or from the train rows.
`skill` is 0 for a guess that ignores the value and 1 for one that is always right, whatever
shape the relation has. `chance` bounds the probability of that many hits without a relation;
`ALPHA` is small enough for millions of tests, so that clean data finds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

ALPHA = 1e-9
FEWEST_ROWS = 20
_ROWS_FOR_REACH = 160

Numbers: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of rows: codes of `classes` classes, or standardised ranks when that is 0."""

    name: str
    values: Numbers
    classes: int = 0

    @property
    def codes(self) -> Codes:
        """Return the classes as whole numbers."""
        return self.values.astype(np.intp)

    def take(self, rows: Codes | NDArray[np.bool_]) -> Labels:
        """Return the labels of some rows; rows without a label are NaN and stay so."""
        return Labels(self.name, self.values[rows], self.classes)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Tell which rows have a label."""
        return ~np.isnan(self.values)


@dataclass(frozen=True, slots=True)
class Strength:
    """How much is told, and how likely that is by chance."""

    skill: float
    chance: float
    rows: int

    def beats(self, skill: float) -> bool:
        """Tell whether it is at least that strong and no accident."""
        return self.skill >= skill and self.chance < ALPHA

    @property
    def text(self) -> str:
        """Return it for a reader."""
        return f"skill {self.skill:.2f} of 1 on {self.rows} rows"


NOTHING = Strength(0.0, 1.0, 0)


def standardised_ranks(values: Numbers) -> Numbers:
    """Return numbers as ranks with mean 0 and variance 1, so that only their order counts."""
    if np.isnan(values).all():
        return values
    ranks = stats.rankdata(values, nan_policy="omit")
    spread = np.nanstd(ranks)
    return np.asarray((ranks - np.nanmean(ranks)) / spread if spread > 0 else ranks * 0.0)


def by_groups(groups: Codes, labels: Labels) -> Strength:
    """Judge a value by the labels of the other rows that have it."""
    sizes = np.bincount(groups)
    if len(groups) < FEWEST_ROWS or sizes.max() in {1, len(groups)}:
        return NOTHING
    if not labels.classes:
        sums = np.bincount(groups, weights=labels.values)
        others = (sums[groups] - labels.values) / (sizes[groups] - 0.5)
        return _fit(others, labels.values)
    votes = votes_of(groups, labels, len(sizes))[groups]
    votes[np.arange(len(groups)), labels.codes] -= 1
    return guessed(votes, labels)


def by_neighbours(values: Numbers, labels: Labels) -> Strength:
    """Judge a number by the labels of the rows that are next to it when rows are sorted by it."""
    if len(values) < FEWEST_ROWS or values.min() == values.max():
        return NOTHING
    ties = np.random.default_rng(0).permutation(len(values))
    ordered = labels.take(np.lexsort((ties, values)))
    reaches = (2, 8) if len(values) >= _ROWS_FOR_REACH else (2,)
    return max((_in_order(ordered, reach) for reach in reaches), key=lambda found: found.skill)


def from_train_groups(
    train: Codes, known: Labels, test: Codes, labels: Labels
) -> Strength:  # fmt: skip
    """Judge a value by the labels of the train rows that have it."""
    if len(test) < FEWEST_ROWS or not len(train):
        return NOTHING
    groups = int(max(train.max(), test.max())) + 1
    if not known.classes:
        sizes = np.bincount(train, minlength=groups) + 0.5
        means = np.bincount(train, weights=known.values, minlength=groups) / sizes
        return _fit(means[test], labels.values)
    return guessed(votes_of(train, known, groups)[test], labels)


def from_train_neighbours(
    train: Numbers, known: Labels, test: Numbers, labels: Labels
) -> Strength:  # fmt: skip
    """Judge a number by the labels of the train rows with the nearest numbers."""
    if len(test) < FEWEST_ROWS or len(train) < FEWEST_ROWS:
        return NOTHING
    order = np.argsort(train, kind="stable")
    after = np.searchsorted(train[order], test)
    near = np.clip(after[:, None] + np.array([-2, -1, 0, 1]), 0, len(train) - 1)
    labels_near = known.values[order][near]
    if not known.classes:
        return _fit(labels_near.mean(axis=1), labels.values)
    votes = np.zeros((len(test), known.classes))
    for column in labels_near.T.astype(np.intp):
        votes[np.arange(len(test)), column] += 1
    return guessed(votes, labels)


def _in_order(labels: Labels, reach: int) -> Strength:
    """Judge each row by as many on either side of it as it reaches."""
    marks = np.eye(labels.classes)[labels.codes] if labels.classes else labels.values[:, None]
    rows = len(marks)
    sums = np.pad(np.cumsum(marks, axis=0), ((1, 0), (0, 0)))
    places = np.arange(rows)
    last, first = np.minimum(places + reach + 1, rows), np.maximum(places - reach, 0)
    near = sums[last] - sums[first] - marks
    found = (
        guessed(near, labels) if labels.classes else _fit(near[:, 0] / (2 * reach), labels.values)
    )
    # Neighbours judge each other, which doubles the variance of the hits: half is evidence.
    return Strength(found.skill, found.chance**0.5, found.rows)


def votes_of(groups: Codes, labels: Labels, count: int) -> Numbers:
    """Count the labels of each group."""
    flat = np.bincount(groups * labels.classes + labels.codes, minlength=count * labels.classes)
    return flat.reshape(count, labels.classes).astype(np.float64)


def guessed(votes: Numbers, labels: Labels) -> Strength:
    """Count the right guesses; where votes are equal or missing the common label is guessed."""
    rows = len(labels.values)
    shares = np.bincount(labels.codes, minlength=labels.classes) / rows
    hits = int((np.argmax(votes + 0.5 * shares, axis=1) == labels.codes).sum())
    base = float(shares.max())
    return Strength(
        above(hits / rows, base), chance_of_hits(hits, rows, base), rows
    )  # fmt: skip


def chance_of_hits(hits: int, rows: int, rate: float) -> float:
    """Return the chance of at least so many hits."""
    return float(special.bdtrc(hits - 1, rows, rate)) if hits > 0 else 1.0


def above(rate: float, base: float) -> float:
    """Return how far a rate is on the way from a base to 1."""
    return max(0.0, (rate - base) / (1 - base)) if base < 1 else 0.0


def _fit(guesses: Numbers, values: Numbers) -> Strength:
    total = float(((values - values.mean()) ** 2).sum())
    if total == 0 or guesses.std() == 0:
        return NOTHING
    left = float(((values - guesses) ** 2).sum())
    return Strength(max(0.0, 1 - left / total), chance_of_fit(guesses, values), len(values))


def chance_of_fit(guesses: Numbers, values: Numbers) -> float:
    """Return the chance of as high a correlation."""
    correlation = float(np.clip(np.corrcoef(guesses, values)[0, 1], -1 + 1e-12, 1 - 1e-12))
    freedom = len(values) - 2
    return float(special.stdtr(freedom, -correlation * np.sqrt(freedom / (1 - correlation**2))))
