"""The rank a score would have had among the teams of the original competition.

A `Leaderboard` has the scores of all teams, read from the user's file, and its ranks are exact.
A `PartialLeaderboard` has the scores at a few ranks, from the task's card, and interpolates
between them. Scores of a leaderboard with five digits are compared in five digits, as MLE-bench
does. The caller decides whether a score on other data may win a medal.
"""

from __future__ import annotations

import csv
import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from reward_server.errors import SetupError
from reward_server.tasks.base import Thresholds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from reward_server.tasks.base import Card

FILE_NAME = "leaderboard.csv"
_DIGITS = 5
_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})


@dataclass(frozen=True, slots=True)
class LeaderboardStanding:
    """The rank of a score among the teams; not `exact` where it is interpolated.

    `percentile` is the share of teams whose score is strictly worse, from 0 to 1.
    """

    medal: str | None
    position: int
    teams: int
    percentile: float
    above_median: bool
    exact: bool


def medal_ranks(teams: int) -> tuple[int, int, int]:
    """Return the last ranks that win gold, silver and bronze among so many teams."""
    if teams < 100:
        return max(1, teams // 10), max(1, teams // 5), max(1, teams * 2 // 5)
    if teams < 250:
        return 10, teams // 5, teams * 2 // 5
    if teams < 1000:
        return 10 + teams // 500, 50, 100
    return 10 + teams // 500, teams // 20, teams // 10


@dataclass(frozen=True)
class LeaderboardBase(ABC):
    """The teams that a score is measured against."""

    thresholds: Thresholds
    higher_is_better: bool

    is_exact: ClassVar[bool]

    @abstractmethod
    def position(self, score: float) -> int:
        """Return one more than the number of teams that are strictly better."""

    @abstractmethod
    def share_beaten(self, score: float) -> float:
        """Return the share of teams that are strictly worse; never less for a better score."""

    def medal(self, score: float) -> str | None:
        """Return the best medal whose threshold the score reaches."""
        for name in ("gold", "silver", "bronze"):
            if self._cost(score) <= self._cost(getattr(self.thresholds, name)):
                return name
        return None

    def standing(self, score: float, *, wins_medals: bool) -> LeaderboardStanding:
        """Return the standing of a score."""
        return LeaderboardStanding(
            medal=self.medal(score) if wins_medals else None,
            position=self.position(score),
            teams=self.thresholds.teams,
            percentile=self.share_beaten(score),
            above_median=self._cost(score) < self._signed(self.thresholds.median),
            exact=self.is_exact,
        )

    def _cost(self, score: float) -> float:
        """Return a number that is lower for a better score, in the digits of the board."""
        marks = self.thresholds
        written = (marks.best, marks.gold, marks.silver, marks.bronze, marks.worst)
        is_coarse = all(round(mark, _DIGITS) == mark for mark in written)
        return self._signed(round(score, _DIGITS) if is_coarse else score)

    def _signed(self, score: float) -> float:
        return -score if self.higher_is_better else score


@dataclass(frozen=True)
class Leaderboard(LeaderboardBase):
    """The scores of all teams, the best first."""

    scores: tuple[float, ...]

    is_exact = True

    @classmethod
    def of(cls, scores: Iterable[float], *, higher_is_better: bool) -> Leaderboard:
        """Return the leaderboard of at least one team, given in any order."""
        ordered = tuple(sorted(scores, reverse=higher_is_better))
        gold, silver, bronze = (ordered[rank - 1] for rank in medal_ranks(len(ordered)))
        thresholds = Thresholds(
            teams=len(ordered),
            best=ordered[0],
            gold=gold,
            silver=silver,
            bronze=bronze,
            median=median(ordered),
            worst=ordered[-1],
        )
        return cls(thresholds, higher_is_better, ordered)

    def position(self, score: float) -> int:
        """Return one more than the number of teams that are strictly better."""
        return 1 + bisect_left(self.scores, self._cost(score), key=self._cost)

    def share_beaten(self, score: float) -> float:
        """Return the share of teams that are strictly worse; never less for a better score."""
        teams = len(self.scores)
        return (teams - bisect_right(self.scores, self._cost(score), key=self._cost)) / teams


@dataclass(frozen=True)
class PartialLeaderboard(LeaderboardBase):
    """A leaderboard of which a few ranks are known; between them ranks lie on a line."""

    is_exact = False

    def position(self, score: float) -> int:
        """Return about one more than the number of teams that are strictly better."""
        return max(1, math.ceil(self._ranks(score)[0]))

    def share_beaten(self, score: float) -> float:
        """Return about the share of teams strictly worse; never less for a better score."""
        teams = self.thresholds.teams
        return max(0.0, (teams - self._ranks(score)[1]) / teams)

    def _ranks(self, score: float) -> tuple[float, float]:
        """Return the first and the last rank that a score has; they differ where marks tie."""
        cost, teams = self._cost(score), self.thresholds.teams
        costs, ranks = zip(*self._known(), strict=True)
        first, behind = bisect_left(costs, cost), bisect_right(costs, cost)
        if first < behind:
            return ranks[first], ranks[behind - 1]
        if behind == 0:
            return 0.0, 0.0
        if behind == len(costs):
            return teams + 1.0, teams + 1.0
        near, far = Fraction(costs[behind - 1]), Fraction(costs[behind])
        share = float((Fraction(cost) - near) / (far - near))  # exact, so that it cannot overflow
        rank = ranks[behind - 1] + (ranks[behind] - ranks[behind - 1]) * share
        return rank, rank

    def _known(self) -> Iterator[tuple[float, float]]:
        marks = self.thresholds
        gold, silver, bronze = medal_ranks(marks.teams)
        yield self._signed(marks.best), 1.0
        yield self._signed(marks.gold), float(gold)
        yield self._signed(marks.silver), float(silver)
        yield self._signed(marks.bronze), float(bronze)
        yield self._signed(marks.median), (marks.teams + 1) / 2
        yield self._signed(marks.worst), float(marks.teams)


def find_leaderboard(card: Card, files: Iterable[Path]) -> LeaderboardBase | None:
    """Return the first leaderboard file there is, else the marks on the card, if it has any.

    Raises:
        SetupError: when the file is there and cannot be read.
    """
    for path in files:
        if path.exists():
            return read_leaderboard(path, higher_is_better=card.higher_is_better)
    return (
        None
        if card.thresholds is None
        else PartialLeaderboard(card.thresholds, card.higher_is_better)
    )


def read_leaderboard(path: Path, *, higher_is_better: bool) -> Leaderboard:
    """Read a CSV file with a column `score`; rows without a score are left out.

    Raises:
        SetupError: when it cannot be read, has no such column, or a score is not a number.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            scores = list(_read_scores(csv.DictReader(file, strict=True)))
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        message = f"the leaderboard {path} cannot be read: {error}"
        raise SetupError(message) from error
    if not scores:
        message = f"the leaderboard {path} has no scores"
        raise SetupError(message)
    return Leaderboard.of(scores, higher_is_better=higher_is_better)


def _read_scores(rows: csv.DictReader[str]) -> Iterator[float]:
    columns = rows.fieldnames or []
    if columns.count("score") != 1:
        message = "it needs one column named score"
        raise ValueError(message)
    for row in rows:
        if None in row or None in row.values():
            message = f"line {rows.line_num} has not as many fields as the header"
            raise ValueError(message)
        if row["score"].strip().lower() not in _MISSING:
            yield _read_score(row["score"], rows.line_num)


def _read_score(text: str, line: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        message = f"the score in line {line} is not a finite number"
        raise ValueError(message)
    return score
