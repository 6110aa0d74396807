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
_PURE = 0.98
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
    votes = _votes(groups, labels, len(sizes))[groups]
    votes[np.arange(len(groups)), labels.codes] -= 1
    return _hits(votes, labels)


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
    return _hits(_votes(train, known, groups)[test], labels)


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
    return _hits(votes, labels)


@dataclass(frozen=True, slots=True)
class Pure:
    """Rows that share something and have almost one label alone."""

    rows: int
    share_of_label: float
    label: int
    group: int


def purest(groups: Codes, labels: Labels) -> Pure | None:
    """Return the largest group with almost one label alone, beyond what chance would do."""
    sizes = np.bincount(groups)
    counts = _votes(groups, labels, len(sizes))
    totals = counts.sum(axis=0)
    chance = stats.binom.sf(counts - 1, sizes[:, None], totals / totals.sum())
    found = (chance < ALPHA / counts.size) & (counts >= _PURE * sizes[:, None])
    if not found.any():
        return None
    best = np.where(found, counts, 0)
    group, label = np.unravel_index(int(best.argmax()), best.shape)
    hits = int(best[group, label])
    return Pure(hits, float(hits / totals[label]), int(label), int(group))


def association(groups: Codes, labels: Labels) -> Strength:
    """Judge whether labels differ between a few groups at all, as a share of variance explained.

    Unlike a guess it sees shifts that leave the commonest label the same in every group.
    """
    sizes = np.bincount(groups)
    groups = np.where(sizes < FEWEST_ROWS, 0, np.arange(1, len(sizes) + 1))[groups]
    _, groups = np.unique(groups, return_inverse=True)
    rows, count = len(groups), int(groups.max(initial=0)) + 1
    if rows < 5 * FEWEST_ROWS or not 1 < count <= 40:
        return NOTHING
    if not labels.classes:
        return _between(groups, labels.values, count)
    counts = _votes(groups, labels, count)
    counts = counts[:, counts.sum(axis=0) >= FEWEST_ROWS]
    counts = counts[counts.sum(axis=1) > 0]
    if min(counts.shape) < 2:
        return NOTHING
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    share = statistic / (float(counts.sum()) * (min(counts.shape) - 1))
    return Strength(share, float(special.chdtrc(freedom, statistic)), rows)


def trend(order: Numbers, labels: Labels) -> Strength:
    """Judge whether labels rise or fall along an order, as a share of variance explained."""
    if len(order) < FEWEST_ROWS or order.min() == order.max():
        return NOTHING
    if not labels.classes:
        return _fit_squared(standardised_ranks(order), labels.values)
    return _between(labels.codes, standardised_ranks(order), labels.classes)


def lag(labels: Labels, distance: int) -> Strength:
    """Judge a row by the one that stands a fixed distance before it."""
    ahead, behind = labels.values[distance:], labels.values[:-distance]
    if len(ahead) < FEWEST_ROWS:
        return NOTHING
    if not labels.classes:
        return _fit_squared(behind, ahead)
    shares = np.bincount(labels.codes, minlength=labels.classes) / len(labels.values)
    expected = float((shares**2).sum())
    agreeing = int((ahead == behind).sum())
    chance = _at_least(agreeing // 2, len(ahead) // 2, expected)
    return Strength(_above(agreeing / len(ahead), expected), chance, len(ahead))


def _in_order(labels: Labels, reach: int) -> Strength:
    """Judge each row by as many on either side of it as it reaches."""
    marks = np.eye(labels.classes)[labels.codes] if labels.classes else labels.values[:, None]
    rows = len(marks)
    sums = np.pad(np.cumsum(marks, axis=0), ((1, 0), (0, 0)))
    places = np.arange(rows)
    last, first = np.minimum(places + reach + 1, rows), np.maximum(places - reach, 0)
    near = sums[last] - sums[first] - marks
    found = _hits(near, labels) if labels.classes else _fit(near[:, 0] / (2 * reach), labels.values)
    # Neighbours judge each other, which doubles the variance of the hits: half is evidence.
    return Strength(found.skill, found.chance**0.5, found.rows)


def _between(groups: Codes, ranks: Numbers, count: int) -> Strength:
    """Judge whether ranks differ between groups, by the test of Kruskal and Wallis."""
    sizes = np.bincount(groups, minlength=count)
    freedom, rows = int((sizes > 0).sum()) - 1, len(ranks)
    centred = ranks - ranks.mean()
    total = float((centred**2).sum())
    if freedom < 1 or total == 0:
        return NOTHING
    sums = np.bincount(groups, weights=centred, minlength=count)
    share = float((sums**2 / np.maximum(sizes, 1)).sum()) / total
    return Strength(share, float(special.chdtrc(freedom, share * (rows - 1))), rows)


def _votes(groups: Codes, labels: Labels, count: int) -> Numbers:
    flat = np.bincount(groups * labels.classes + labels.codes, minlength=count * labels.classes)
    return flat.reshape(count, labels.classes).astype(np.float64)


def _hits(votes: Numbers, labels: Labels) -> Strength:
    """Count the right guesses; where votes are equal or missing the common label is guessed."""
    rows = len(labels.values)
    shares = np.bincount(labels.codes, minlength=labels.classes) / rows
    hits = int((np.argmax(votes + 0.5 * shares, axis=1) == labels.codes).sum())
    base = float(shares.max())
    return Strength(
        _above(hits / rows, base), _at_least(hits, rows, base), rows
    )  # fmt: skip


def _at_least(hits: int, rows: int, rate: float) -> float:
    """Return the chance of at least so many hits."""
    return float(special.bdtrc(hits - 1, rows, rate)) if hits > 0 else 1.0


def _above(rate: float, base: float) -> float:
    return max(0.0, (rate - base) / (1 - base)) if base < 1 else 0.0


def _fit(guesses: Numbers, values: Numbers) -> Strength:
    total = float(((values - values.mean()) ** 2).sum())
    if total == 0 or guesses.std() == 0:
        return NOTHING
    left = float(((values - guesses) ** 2).sum())
    return Strength(max(0.0, 1 - left / total), _chance_of(guesses, values), len(values))


def _fit_squared(first: Numbers, second: Numbers) -> Strength:
    if first.std() == 0 or second.std() == 0:
        return NOTHING
    correlation = float(np.corrcoef(first, second)[0, 1])
    chance = min(_chance_of(first, second), _chance_of(-first, second)) * 2
    return Strength(correlation**2, chance, len(first))


def _chance_of(guesses: Numbers, values: Numbers) -> float:
    correlation = float(np.clip(np.corrcoef(guesses, values)[0, 1], -1 + 1e-12, 1 - 1e-12))
    freedom = len(values) - 2
    return float(special.stdtr(freedom, -correlation * np.sqrt(freedom / (1 - correlation**2))))
