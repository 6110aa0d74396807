"""The progress that a preparation reports while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class PreparationStage(StrEnum):
    """The stage of the work; the text is for people."""

    RESUMED = "resuming an interrupted preparation"
    TWIN = "making the twin"
    RAW = "reading raw files"
    SPLIT = "splitting"
    GRADE = "grading the sample submission"
    RECORD = "recording checksums"
    VERIFY = "verifying"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class PreparationStep:
    """One stage of one task, and how far it has come where that can be counted."""

    task_id: str
    stage: PreparationStage
    detail: str = ""
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        count = f" {self.done:,} of {self.total:,} files" if self.total else ""
        detail = f", {self.detail}" if self.detail else ""
        return f"{self.task_id}: {self.stage.value}{count}{detail}"


Report: TypeAlias = Callable[[PreparationStep], None]


def quiet(_: PreparationStep) -> None:
    """Report to nobody."""
