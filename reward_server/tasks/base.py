"""The values that describe a task to the rest of the server.

A task is a folder: `task.toml` (the card), `description.md`, `prepare.py`, `grade.py`,
`twin.py`. This module holds the values read from it; nothing here opens a data file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from reward_server.reward.base import Scale

if TYPE_CHECKING:
    from pathlib import Path

    from reward_server.tasks.leaderboards import LeaderboardBase, LeaderboardStanding

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Source(StrEnum):
    """The origin of the raw files of prepared data."""

    TWIN = "twin"
    RAW = "raw"


class TwinSize(StrEnum):
    """How large a twin is made: for tests and small machines, or as large as Kaggle's data."""

    SMALL = "small"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class TwinRows:
    """How many rows the raw training file of a twin has in each size."""

    small: int
    full: int

    def of(self, size: TwinSize) -> int:
        """Return the rows of one size."""
        return self.small if size is TwinSize.SMALL else self.full


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The number of teams of the original leaderboard, and the scores at some ranks."""

    teams: Annotated[int, Field(ge=1)]
    best: Finite
    gold: Finite
    silver: Finite
    bronze: Finite
    median: Finite
    worst: Finite


class TargetKind(StrEnum):
    """The kind of value that a submission predicts."""

    BINARY = "binary"
    CLASSES = "classes"
    NUMBERS = "numbers"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Target:
    """The label columns in the answers, and the public files that lack them."""

    kind: TargetKind
    id_column: str
    columns: tuple[str, ...]
    hidden_columns: tuple[str, ...]
    train_file: str
    test_file: str


@dataclass(frozen=True, slots=True)
class Card:
    """The content of `task.toml`."""

    id: str
    title: str
    metric: str
    higher_is_better: bool
    wall_seconds: float
    memory_bytes: int
    disk_bytes: int
    artifact_bytes: int
    answers: str
    sample_submission: str
    public_files: tuple[str, ...]
    raw_files: tuple[str, ...]
    columns: tuple[str, ...]
    target: Target | None = None
    twin: TwinRows | None = None
    baseline: float | None = None
    cores: Annotated[int, Field(ge=1)] = 1
    stall_seconds: Annotated[float, Field(ge=0.5, allow_inf_nan=False)] | None = None
    thresholds: Thresholds | None = None

    def __post_init__(self) -> None:
        """Refuse an infinite baseline and thresholds that are not in order."""
        if self.baseline is not None and not math.isfinite(self.baseline):
            message = "baseline must be finite"
            raise ValueError(message)
        marks = self.thresholds
        if marks is None:
            return
        scores = [marks.best, marks.gold, marks.silver, marks.bronze, marks.median, marks.worst]
        if scores != sorted(scores, reverse=self.higher_is_better):
            message = "thresholds must go from the best to the worst"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Task:
    """A task whose data is prepared and can be served.

    `sample_score` is the score of the sample submission on this data, if that is a number.
    """

    card: Card
    description: str
    folder: Path
    public: Path
    answers: Path
    data_digest: str
    source: Source
    sample_score: float | None = None
    board: LeaderboardBase | None = None

    @property
    def scale(self) -> Scale:
        """Return the scale that reward schemes use for this task."""
        marks = None if self.board is None else self.board.thresholds
        zeros = (self.sample_score, self.card.baseline, None if marks is None else marks.worst)
        return Scale(
            higher_is_better=self.card.higher_is_better,
            baseline=next((zero for zero in zeros if zero is not None), None),
            gold=None if marks is None else marks.gold,
            ranking=self.board,
        )

    def standing(self, score: float | None) -> LeaderboardStanding | None:
        """Return the standing of a score; only the original data can win a medal."""
        if score is None or self.board is None:
            return None
        return self.board.standing(score, wins_medals=self.source is Source.RAW)

    def medal(self, score: float | None) -> str | None:
        """Return the medal a score would have won."""
        standing = self.standing(score)
        return None if standing is None else standing.medal
