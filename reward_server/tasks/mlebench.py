"""MLE-bench's competitions as tasks: those whose data lies prepared where MLE-bench puts it.

The package is found without being imported, and its data is left as it is. A competition that
cannot be served is listed with the reason.
"""

from __future__ import annotations

import csv
import functools
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.errors import SetupError
from reward_server.tasks import inventory
from reward_server.tasks.base import Card, Source, Task
from reward_server.tasks.folders import read_toml
from reward_server.tasks.leaderboards import find_leaderboard
from reward_server.tasks.sdk.competition import (
    CONFIG,
    LEADERBOARD,
    Competition,
    higher_wins,
    read_competition,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reward_server.tasks.leaderboards import LeaderboardBase

_ID = re.compile(r"[A-Za-z0-9]+([-_.][A-Za-z0-9]+)*")
_LEAST_ARTIFACT_BYTES = 64 << 20
_SAMPLES_ROOM = 4  # a submission may be so many times as large as its sample
_MANY_FILES = 100
_DIRECTIONS = {"higher": True, "lower": False}
_HERE = """\
# On this server

All files are in `/workdir/{id}/prepared/public`. Write `./submission.csv`, a table with a header
in the form of the sample submission:

```
{header}
```
"""
_HOW_TO_SET_DIRECTION = "say it in the file REWARD_SERVER_MLEBENCH__DIRECTIONS names"


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of a competition's programs; its config does not set them."""

    wall_seconds: float
    memory_bytes: int


class Competitions:
    """Finds competitions by id; reloads a competition when its files change."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        data_dir: Path,
        allowance: Allowance,
        directions: Mapping[str, bool],
    ) -> None:
        self.folders = folders
        self._data_dir = data_dir.absolute()
        self._allowance = allowance
        self._directions = directions
        self._loaded: dict[str, tuple[inventory.Version, Task]] = {}

    def with_data(self) -> tuple[str, ...]:
        """Return the ids of those that have a folder of prepared data."""
        return tuple(i for i in self.folders if (self._data_dir / i / "prepared").is_dir())

    def get(self, task_id: str) -> Task:
        """Return a known competition as a task.

        Raises:
            SetupError: with the reason why it cannot be served.
        """
        folder = self.folders[task_id]
        competition = _read(str(folder))
        answers, sample, public = self._paths(competition)
        version = inventory.version(answers, sample, public, folder / LEADERBOARD)
        if task_id not in self._loaded or self._loaded[task_id][0] != version:
            task = self._load(folder, competition, version)
            self._loaded[task_id] = version, task
        return self._loaded[task_id][1]

    def _paths(self, competition: Competition) -> tuple[Path, Path, Path]:
        dataset, public = competition.dataset, self._data_dir / competition.id / "prepared/public"
        answers, sample = (self._data_dir / p for p in (dataset.answers, dataset.sample_submission))
        for name, path in (("answers", answers), ("sample submission", sample)):
            if path.suffix != ".csv":
                message = f"its {name} are not a .csv file: {path.name}"
                raise SetupError(message)
            if not path.is_file():
                message = f"its data is not prepared: {path} is missing"
                raise SetupError(message)
        if not public.is_dir():
            message = f"its data is not prepared: {public} is missing"
            raise SetupError(message)
        return answers, sample, public

    def _load(self, folder: Path, competition: Competition, version: inventory.Version) -> Task:
        answers, sample, public = self._paths(competition)
        is_higher_better = self._higher_wins(folder)
        card = self._card(competition, sample, public, higher_is_better=is_higher_better)
        return Task(
            card=card,
            description=_describe(folder, card),
            folder=folder,
            public=public,
            answers=answers,
            data_digest=inventory.digest((answers, sample), public, version),
            source=Source.RAW,
            board=_board(folder, card),
        )

    def _higher_wins(self, folder: Path) -> bool:
        if folder.name in self._directions:
            return self._directions[folder.name]
        try:
            return higher_wins(folder / LEADERBOARD)
        except SetupError as error:
            message = f"its direction is not known, {error}: {_HOW_TO_SET_DIRECTION}"
            raise SetupError(message) from error

    def _card(
        self, competition: Competition, sample: Path, public: Path, *, higher_is_better: bool
    ) -> Card:
        if not _ID.fullmatch(competition.id):
            message = "its id is not made of letters, digits and hyphens"
            raise SetupError(message)
        is_public = sample.is_relative_to(public)
        room = _SAMPLES_ROOM * sample.stat().st_size
        return Card(
            id=competition.id,
            title=competition.name,
            metric=competition.grader.name,
            higher_is_better=higher_is_better,
            wall_seconds=self._allowance.wall_seconds,
            memory_bytes=self._allowance.memory_bytes,
            disk_bytes=self._allowance.memory_bytes,
            artifact_bytes=max(_LEAST_ARTIFACT_BYTES, room),
            answers=competition.dataset.answers.name,
            sample_submission=str(sample.relative_to(public)) if is_public else sample.name,
            public_files=_top_files(public),
            raw_files=(),
            columns=_header(sample),
        )


NO_COMPETITIONS = Competitions({}, Path(), Allowance(0.0, 0), {})


def find_competitions(package: Path | None = None) -> dict[str, Path]:
    """Return the folders of the package `mlebench` by id; it is not imported.

    Raises:
        SetupError: when it is not installed, or not where it was said to be.
    """
    if package is None:
        spec = importlib.util.find_spec("mlebench")
        if spec is None or not spec.submodule_search_locations:
            message = (
                "MLE-bench is asked for but the package mlebench is not installed: install it "
                "beside the server, or name its folder in REWARD_SERVER_MLEBENCH__PACKAGE"
            )
            raise SetupError(message)
        package = Path(next(iter(spec.submodule_search_locations)))
    if not (package / "competitions").is_dir():
        message = f"{package} is not the package mlebench: it has no folder competitions"
        raise SetupError(message)
    configs = sorted(package.absolute().glob(f"competitions/*/{CONFIG}"))
    return {path.parent.name: path.parent for path in configs}


def read_directions(path: Path | None) -> dict[str, bool]:
    """Read which competitions are won by the higher score and which by the lower.

    Raises:
        SetupError: when the file is not TOML with lines like `some-id = "lower"`.
    """
    if path is None:
        return {}
    given = read_toml(path)
    for name, direction in given.items():
        if direction not in ("higher", "lower"):
            message = f'{path}: {name} must be "higher" or "lower"'
            raise SetupError(message)
    return {name: _DIRECTIONS[direction] for name, direction in given.items()}


@functools.cache
def _read(folder: str) -> Competition:
    return read_competition(Path(folder))


def _board(folder: Path, card: Card) -> LeaderboardBase | None:
    try:
        return find_leaderboard(card, [folder / LEADERBOARD])
    except SetupError:
        return None  # usually a Git LFS pointer to a file that was not fetched


def _header(sample: Path) -> tuple[str, ...]:
    try:
        with sample.open(encoding="utf-8-sig", newline="") as file:
            return tuple(next(csv.reader(file)))
    except (StopIteration, UnicodeDecodeError, csv.Error) as error:
        message = f"its sample submission has no header: {sample}"
        raise SetupError(message) from error


def _top_files(public: Path) -> tuple[str, ...]:
    with os.scandir(public) as entries:
        names = sorted(f"{entry.name}/*" if entry.is_dir() else entry.name for entry in entries)
    if len(names) > _MANY_FILES:
        names = sorted({f"*{Path(name).suffix}" for name in names})
    return tuple(names)


def _describe(folder: Path, card: Card) -> str:
    """Return the competition's own text, and what holds here for every task."""
    try:
        own = (folder / "description.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"its description.md cannot be read: {error}"
        raise SetupError(message) from error
    header = ",".join(card.columns)
    return f"{own.rstrip()}\n\n{_HERE.format(id=card.id, header=header)}"
