"""One competition of MLE-bench, as the files of its folder describe it.

Only `config.yaml` and `leaderboard.csv` are read here. MLE-bench itself is never imported by
the server: its graders run in the grading process alone.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import PurePosixPath  # noqa: TC003 -- pydantic reads the fields' types
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = "config.yaml"
LEADERBOARD = "leaderboard.csv"
_LFS_POINTER = "version https://git-lfs"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Where the files that grading needs lie below MLE-bench's data directory."""

    answers: PurePosixPath
    sample_submission: PurePosixPath
    gold_submission: PurePosixPath | None = None


@dataclass(frozen=True, slots=True)
class CompetitionGrader:
    """The name of the metric, and the function that computes it as `module:function`."""

    name: str
    grade_fn: str


@dataclass(frozen=True, slots=True)
class Competition:
    """The fields of `config.yaml` that the server needs."""

    id: str
    name: str
    dataset: Dataset
    grader: CompetitionGrader

    def controls(self, answers: Path) -> tuple[Path, ...]:
        """Return submissions that a grader in order accepts: the sample and the gold one.

        Answers that are not the competition's own have only themselves.
        """
        parts = self.dataset.answers.parts
        if answers.parts[-len(parts) :] != parts:
            return (answers,)
        data_dir = answers.parents[len(parts) - 1]
        gold = self.dataset.gold_submission or self.dataset.answers
        return data_dir / self.dataset.sample_submission, data_dir / gold


_COMPETITIONS = TypeAdapter(Competition)


def is_competition(folder: Path) -> bool:
    """Tell a competition's folder from a task's."""
    return (folder / CONFIG).is_file() and not (folder / "task.toml").is_file()


def read_competition(folder: Path) -> Competition:
    """Read the config of a competition's folder.

    Raises:
        SetupError: when it cannot be read, lacks a field or names another competition.
    """
    try:
        import yaml  # noqa: PLC0415 -- there only with the extra
    except ModuleNotFoundError as error:
        message = "MLE-bench's configs need a library: pip install 'reward-server[mlebench]'"
        raise SetupError(message) from error
    try:
        fields = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
        competition = _COMPETITIONS.validate_python(fields)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        message = f"{CONFIG} cannot be read: {error}"
        raise SetupError(message) from error
    except ValidationError as error:
        names = (".".join(map(str, problem["loc"])) for problem in error.errors())
        message = f"{CONFIG} has no proper {', '.join(names)}"
        raise SetupError(message) from error
    if competition.id != folder.name:
        message = f"{CONFIG} is that of {competition.id}"
        raise SetupError(message)
    return competition


def higher_wins(leaderboard: Path) -> bool:
    """Infer the direction as MLE-bench does: from the first team's score and the last one's.

    Raises:
        SetupError: when the file is missing, is no table of scores, or leaves it open.
    """
    first, last = _ends(leaderboard)
    if first == last:
        message = f"{LEADERBOARD} does not tell whether higher is better"
        raise SetupError(message)
    return first > last


def _ends(leaderboard: Path) -> tuple[float, float]:
    if not leaderboard.is_file():
        message = f"{LEADERBOARD} is missing"
        raise SetupError(message)
    try:
        with leaderboard.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        first, last = float(rows[0]["score"]), float(rows[-1]["score"])
    except (KeyError, IndexError, TypeError, ValueError, csv.Error) as error:
        message = f"{LEADERBOARD} {_what_else(leaderboard)}"
        raise SetupError(message) from error
    if not (math.isfinite(first) and math.isfinite(last)):
        message = f"{LEADERBOARD} begins or ends without a score"
        raise SetupError(message)
    return first, last


def _what_else(leaderboard: Path) -> str:
    with leaderboard.open("rb") as file:
        is_pointer = file.read(64).startswith(_LFS_POINTER.encode())
    return "is a Git LFS pointer (git lfs pull)" if is_pointer else "has no column of scores"
