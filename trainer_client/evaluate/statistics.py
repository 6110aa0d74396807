"""Statistics of samples, as pure functions.

A score counts only if the sample is valid; a reward always counts. Lost samples have neither and
are not included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trainer_client.evaluate.paper import Published


class Scored(Protocol):
    """The fields of a sample that the statistics use."""

    @property
    def reward(self) -> float: ...  # noqa: D102
    @property
    def score(self) -> float | None: ...  # noqa: D102
    @property
    def valid(self) -> bool: ...  # noqa: D102
    @property
    def medal(self) -> str | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Numbers:
    """The figures of some samples of one seed; `best_score` is the lowest where lower is better."""

    scored: int
    share_valid: float | None
    share_medal: float | None
    mean_reward: float | None
    mean_score: float | None
    best_score: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over seeds: the mean of those that have it, its standard error, how many they are.

    One seed has no standard error.
    """

    mean: float
    standard_error: float | None
    seeds: int


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank among others; the best is 1."""

    rank: int
    of: int


def numbers(samples: Sequence[Scored], *, higher_is_better: bool) -> Numbers:
    """Sum up samples of one seed."""
    scores = [score for score in map(valid_score, samples) if score is not None]
    best = max if higher_is_better else min
    return Numbers(
        scored=len(samples),
        share_valid=_mean([float(one.valid) for one in samples]),
        share_medal=_mean([float(one.medal is not None) for one in samples]),
        mean_reward=_mean([one.reward for one in samples]),
        mean_score=_mean(scores),
        best_score=best(scores, default=None),
    )


def valid_score(sample: Scored) -> float | None:
    """Return a sample's score if it counts."""
    return sample.score if sample.valid else None


def better(first: Scored, second: Scored | None, *, higher_is_better: bool) -> Scored:
    """Return the better of two: by score, a valid one before one that is not, the first if even."""
    if second is None:
        return first
    before, after = valid_score(first), valid_score(second)
    if after is None:
        return first
    if before is None:
        return second
    return second if (after > before if higher_is_better else after < before) else first


def estimate(values: Iterable[float | None]) -> Estimate | None:
    """Return the mean over seeds and its standard error; nothing where no seed has the figure."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    error = stdev(found) / math.sqrt(len(found)) if len(found) > 1 else None
    return Estimate(fmean(found), error, len(found))


def estimates(by_seed: Iterable[Numbers]) -> Mapping[str, Estimate | None]:
    """Return every figure over seeds, by its name."""
    seeds = list(by_seed)
    names = ("share_valid", "share_medal", "mean_reward", "mean_score", "best_score")
    return {name: estimate(getattr(one, name) for one in seeds) for name in names}


def rank(ours: float, others: Iterable[Published], *, higher_is_better: bool) -> Rank:
    """Return our rank among the paper's figures, without missing ones."""
    options = [one.mean for one in others if one.mean is not None]
    ahead = [mean for mean in options if (mean > ours if higher_is_better else mean < ours)]
    return Rank(len(ahead) + 1, len(options) + 1)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
