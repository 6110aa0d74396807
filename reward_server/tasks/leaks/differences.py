"""Do labels differ between groups, along an order, or from row to row?

A guess of the label misses shifts that leave the commonest label the same everywhere. These
tests see them; they are for what has no business to be related to the label at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from reward_server.tasks.leaks.strength import (
    ALPHA,
    FEWEST_ROWS,
    NOTHING,
    Strength,
    above,
    chance_of_fit,
    chance_of_hits,
    standardised_ranks,
    votes_of,
)

if TYPE_CHECKING:
    from reward_server.tasks.leaks.strength import Codes, Labels, Numbers

_PURE = 0.98


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
    counts = votes_of(groups, labels, len(sizes))
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
    if rows < 3 * FEWEST_ROWS or not 1 < count <= 40:
        return NOTHING
    if not labels.classes:
        return _between(groups, labels.values, count)
    counts = votes_of(groups, labels, count)
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
    chance = chance_of_hits(agreeing // 2, len(ahead) // 2, expected)
    return Strength(above(agreeing / len(ahead), expected), chance, len(ahead))


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


def _fit_squared(first: Numbers, second: Numbers) -> Strength:
    if first.std() == 0 or second.std() == 0:
        return NOTHING
    correlation = float(np.corrcoef(first, second)[0, 1])
    chance = min(chance_of_fit(first, second), chance_of_fit(-first, second)) * 2
    return Strength(correlation**2, chance, len(first))
