"""What a task is to the rest of the server.

A task is a folder: `task.toml` (the card), `description.md`, `prepare.py`, `grade.py`,
`twin.py`. This module holds the values read from it; nothing here opens a data file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

if TYPE_CHECKING:
    from pathlib import Path


class Source(StrEnum):
    """Where the raw files of prepared data came from."""

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
    """What is known of the original leaderboard: its teams and the scores at some ranks."""

    teams: int
    best: float
    gold: float
    silver: float
    bronze: float
    median: float
    worst: float


class TargetKind(StrEnum):
    """What kind of value a task asks for."""

    BINARY = "binary"
    CLASSES = "classes"
    NUMBERS = "numbers"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Target:
    """Where the labels stand in the answers, and which public files they are hidden from."""

    kind: TargetKind
    id_column: str
    columns: tuple[str, ...]
    hidden_columns: tuple[str, ...]
    train_file: str
    test_file: str


@dataclass(frozen=True, slots=True)
class Card:
    """What `task.toml` says."""

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


@dataclass(frozen=True, slots=True)
class Task:
    """A task whose data is prepared and can be served."""

    card: Card
    description: str
    folder: Path
    public: Path
    answers: Path
    data_digest: str
    source: Source

    def medal(self, score: float | None) -> str | None:
        """Return the medal a score would have won; only the original data can win one."""
        thresholds = self.card.thresholds
        if score is None or thresholds is None or self.source is not Source.RAW:
            return None
        for name in ("gold", "silver", "bronze"):
            bar = getattr(thresholds, name)
            if score >= bar if self.card.higher_is_better else score <= bar:
                return name
        return None
