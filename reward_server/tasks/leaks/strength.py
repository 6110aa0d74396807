"""How well a view predicts the labels, and how likely chance alone would do as well.

A row's label is guessed from other rows that share its value (`from_groups`) or are next to
it in an order (`from_neighbours`); the other rows are those of the same table or the train
rows. `skill` is 0 for a guess that ignores the value and 1 for one that is always right,
whatever shape the relation has. `chance` bounds the probability of that many hits without a
relation; `ALPHA` is small enough for millions of tests, so that clean data passes.

`association` and `trend` also see shifts that leave the commonest label the same everywhere.
They are for what must not be related to the label at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

ALPHA = 1e-9
FEWEST_ROWS = 20
_ROWS_FOR_WIDE_REACH = 160
_MOST_GROUPS = 40
_PURE = 0.98
_PRIOR = 0.5

Numbers: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of rows: codes of `classes` classes, or standardised ranks when that is 0.

    A row without a label is NaN.
    """

    name: str
    values: Numbers
    classes: int = 0

    @property
    def codes(self) -> Codes:
        """Return the classes as whole numbers."""
        return self.values.astype(np.intp)

    @property
    def marks(self) -> Numbers:
        """Return a column per class with ones, or the ranks as one column."""
        return np.eye(self.classes)[self.codes] if self.classes else self.values[:, None]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Tell which rows have a label."""
        return ~np.isnan(self.values)

    def take(self, rows: Codes | NDArray[np.bool_]) -> Labels:
        """Return the labels of some rows."""
        return Labels(self.name, self.values[rows], self.classes)


@dataclass(frozen=True, slots=True)
class Strength:
    """How well something predicts, and how likely that is by chance."""

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


def from_groups(
    groups: Codes, labels: Labels, train: tuple[Codes, Labels] | None = None
) -> Strength:
    """Predict from the rows with the same value: train rows, or the other rows of the table."""
    learned_groups, learned = train or (groups, labels)
    if len(groups) < FEWEST_ROWS or not len(learned_groups):
        return NOTHING
    count = int(max(groups.max(), learned_groups.max())) + 1
    sizes = np.bincount(learned_groups, minlength=count)
    if train is None and sizes.max() in {1, len(groups)}:
        return NOTHING
    sums, sizes = label_sums(learned_groups, learned, count)[groups], sizes[groups]
    if train is None:
        sums, sizes = sums - labels.marks, sizes - 1
    return score(sums, sizes, labels)


def from_neighbours(
    numbers: Numbers, labels: Labels, train: tuple[Numbers, Labels] | None = None
) -> Strength:
    """Predict from the rows with the nearest numbers: train rows, or those of the table."""
    learned_numbers, learned = train or (numbers, labels)
    rows = len(learned_numbers)
    if min(len(numbers), rows) < FEWEST_ROWS or learned_numbers.min() == learned_numbers.max():
        return NOTHING
    ties = np.random.default_rng(0).permutation(rows)
    order = np.lexsort((ties, learned_numbers))
    marks = learned.take(order).marks
    sums = np.pad(np.cumsum(marks, axis=0), ((1, 0), (0, 0)))
    if train is None:
        start, end, own, labels = np.arange(rows), np.arange(1, rows + 1), 1, labels.take(order)
    else:
        start = end = np.searchsorted(learned_numbers[order], numbers)
        own = 0
    found = []
    for reach in (2, 8) if rows >= _ROWS_FOR_WIDE_REACH else (2,):
        first, last = np.maximum(start - reach, 0), np.minimum(end + reach, rows)
        near = sums[last] - sums[first] - (marks if own else 0)
        found.append(score(near, last - first - own, labels))
    best = max(found, key=lambda strength: strength.skill)
    # Rows of one table predict each other, which doubles the variance of the hits.
    return Strength(best.skill, best.chance**0.5 if own else best.chance, best.rows)


def label_sums(groups: Codes, labels: Labels, count: int) -> Numbers:
    """Count the classes of each group, or sum up its numbers."""
    if not labels.classes:
        sums: Numbers = np.bincount(groups, labels.values, count).astype(np.float64)
        return sums[:, None]
    flat = np.bincount(groups * labels.classes + labels.codes, minlength=count * labels.classes)
    return flat.reshape(count, labels.classes).astype(np.float64)


def score(sums: Numbers, sizes: Codes, labels: Labels) -> Strength:
    """Compare labels with the mean of other labels, drawn a little towards that of all rows."""
    rows = len(labels.values)
    if not labels.classes:
        return _score_numbers(sums[:, 0] / (sizes + _PRIOR), labels.values)
    shares = np.bincount(labels.codes, minlength=labels.classes) / rows
    hits = int((np.argmax(sums + _PRIOR * shares, axis=1) == labels.codes).sum())
    base = float(shares.max())
    skill = max(0.0, (hits / rows - base) / (1 - base)) if base < 1 else 0.0
    chance = float(special.bdtrc(hits - 1, rows, base)) if hits else 1.0
    return Strength(skill, chance, rows)


def _score_numbers(guesses: Numbers, values: Numbers) -> Strength:
    total = float(((values - values.mean()) ** 2).sum())
    if total == 0 or guesses.std() == 0:
        return NOTHING
    left = float(((values - guesses) ** 2).sum())
    _, chance = _correlate(guesses, values)
    return Strength(max(0.0, 1 - left / total), chance, len(values))


def _correlate(first: Numbers, second: Numbers) -> tuple[float, float]:
    """Return the correlation and the chance of one that is as high."""
    correlation = float(np.clip(np.corrcoef(first, second)[0, 1], -1 + 1e-12, 1 - 1e-12))
    freedom = len(second) - 2
    deviation = correlation * np.sqrt(freedom / (1 - correlation**2))
    return correlation, float(special.stdtr(freedom, -deviation))


def pure_labels(counts: Numbers, totals: Numbers) -> NDArray[np.bool_]:
    """Tell which features (rows) occur with almost one label (columns) alone, beyond chance."""
    sizes = counts.sum(axis=1, keepdims=True)
    chance = special.bdtrc(counts - 1, sizes.astype(np.intp), totals / max(totals.sum(), 1))
    is_rare = chance < ALPHA / max(counts.size, 1)
    return np.asarray(is_rare & (counts >= _PURE * sizes) & (counts > 0))


def association(groups: Codes, labels: Labels) -> Strength:
    """Test whether labels differ between a few groups, as a share of variance explained."""
    sizes = np.bincount(groups)
    groups = np.where(sizes < FEWEST_ROWS, 0, np.arange(1, len(sizes) + 1))[groups]
    _, groups = np.unique(groups, return_inverse=True)
    rows, count = len(groups), int(groups.max(initial=0)) + 1
    if rows < 3 * FEWEST_ROWS or not 1 < count <= _MOST_GROUPS:
        return NOTHING
    if not labels.classes:
        return _between(groups, labels.values, count)
    counts = label_sums(groups, labels, count)
    counts = counts[:, counts.sum(axis=0) >= FEWEST_ROWS]
    counts = counts[counts.sum(axis=1) > 0]
    if min(counts.shape) < 2:
        return NOTHING
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    share = statistic / (float(counts.sum()) * (min(counts.shape) - 1))
    return Strength(share, float(special.chdtrc(freedom, statistic)), rows)


def trend(numbers: Numbers, labels: Labels) -> Strength:
    """Test whether labels rise or fall along an order, as a share of variance explained."""
    if len(numbers) < FEWEST_ROWS or numbers.min() == numbers.max():
        return NOTHING
    ranks = standardised_ranks(numbers)
    if labels.classes:
        return _between(labels.codes, ranks, labels.classes)
    if labels.values.std() == 0:
        return NOTHING
    correlation, chance = _correlate(ranks, labels.values)
    return Strength(correlation**2, 2 * min(chance, 1 - chance), len(ranks))


def _between(groups: Codes, ranks: Numbers, count: int) -> Strength:
    """Test whether ranks differ between groups (Kruskal and Wallis)."""
    sizes = np.bincount(groups, minlength=count)
    freedom, rows = int((sizes > 0).sum()) - 1, len(ranks)
    centred = ranks - ranks.mean()
    total = float((centred**2).sum())
    if freedom < 1 or total == 0:
        return NOTHING
    sums = np.bincount(groups, weights=centred, minlength=count)
    share = float((sums**2 / np.maximum(sizes, 1)).sum()) / total
    return Strength(share, float(special.chdtrc(freedom, share * (rows - 1))), rows)
