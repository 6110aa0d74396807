"""The known tasks, and those with data that the server can serve.

Tasks with a folder of ours come first; a competition of MLE-bench is one more if its id is
free. An id that a client sends is a key of a dictionary and never a part of a path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import RequestError, SetupError
from reward_server.model import ErrorKind
from reward_server.tasks import inventory
from reward_server.tasks.base import Card, Task
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.leaderboards import FILE_NAME, find_leaderboard
from reward_server.tasks.manifest import NAME, read_manifest
from reward_server.tasks.mlebench import NO_COMPETITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from reward_server.tasks.leaderboards import LeaderboardBase, LeaderboardStanding
    from reward_server.tasks.mlebench import Competitions


@dataclass(frozen=True, slots=True)
class RefusedCompetition:
    """A competition with data that the server does not serve, and why."""

    task_id: str
    reason: str


class Registry:
    """Finds tasks by id; reloads a task when its manifest or its leaderboard changes."""

    def __init__(
        self,
        data_dir: Path,
        folders: Iterable[Path] = (),
        competitions: Competitions | None = None,
    ) -> None:
        self._data_dir = data_dir
        self._competitions = competitions or NO_COMPETITIONS
        self._folders = find_folders(folders)
        self._loaded: dict[str, tuple[tuple[inventory.Version, ...], Task]] = {}
        self._cards = {task_id: read_card(path) for task_id, path in self._folders.items()}

    def cards(self) -> tuple[Card, ...]:
        """Return the card of every known task that is no competition, prepared or not."""
        return tuple(self._cards[task_id] for task_id in sorted(self._cards))

    def folder(self, task_id: str) -> Path:
        """Return the folder of a known task.

        Raises:
            RequestError: `unknown_task`.
        """
        if self.is_competition(task_id):
            return self._competitions.folders[task_id]
        if task_id not in self._folders:
            message = "there is no such task"
            raise RequestError(ErrorKind.UNKNOWN_TASK, message)
        return self._folders[task_id]

    def get(self, task_id: str) -> Task:
        """Return a task that can be served.

        Raises:
            RequestError: `unknown_task` when it is not known or not prepared.
            SetupError: when its manifest or its leaderboard is damaged.
        """
        self.folder(task_id)
        if self.is_competition(task_id):
            return self._get_competition(task_id)
        read = (self._prepared(task_id) / NAME, *self._board_files(task_id))
        version = tuple(map(inventory.version, read))
        if not version[0]:
            message = "the task is known but not prepared on this server"
            raise RequestError(ErrorKind.UNKNOWN_TASK, message)
        if task_id not in self._loaded or self._loaded[task_id][0] != version:
            self._loaded[task_id] = version, self._load(task_id)
        return self._loaded[task_id][1]

    def _load(self, task_id: str) -> Task:
        folder, prepared = self._folders[task_id], self._prepared(task_id)
        manifest, card = read_manifest(prepared), self._cards[task_id]
        return Task(
            card=card,
            description=(folder / "description.md").read_text(encoding="utf-8"),
            folder=folder,
            public=prepared / "public",
            answers=prepared / "private" / card.answers,
            data_digest=manifest.data_digest,
            source=manifest.source,
            sample_score=manifest.sample_score,
            board=self.board(task_id),
        )

    def board(self, task_id: str) -> LeaderboardBase | None:
        """Return the leaderboard of a known task, prepared or not.

        Raises:
            SetupError: when its leaderboard is damaged.
        """
        if self.is_competition(task_id):
            return self.get(task_id).board
        return find_leaderboard(self._cards[task_id], self._board_files(task_id))

    def standing(
        self, task_id: str, data_digest: str, score: float | None
    ) -> LeaderboardStanding | None:
        """Return the standing of a score on this data, or none for other data."""
        try:
            task = self.get(task_id)
        except RequestError:
            return None
        return task.standing(score) if task.data_digest == data_digest else None

    def prepared(self) -> tuple[Task, ...]:
        """Return every task that can be served."""
        served = (task for task in self._found_competitions() if isinstance(task, Task))
        return (*(self.get(task_id) for task_id in self._ready_ids()), *served)

    def prepared_ids(self) -> list[str]:
        """Return the ids of the tasks with data, without reading the data."""
        return [*self._ready_ids(), *self._competitions.with_data()]

    def _ready_ids(self) -> list[str]:
        return [i for i in sorted(self._cards) if (self._prepared(i) / NAME).is_file()]

    def public_folders(self) -> tuple[Path, ...]:
        """Return the folders that programs of prepared tasks see."""
        folders = [self._prepared(task_id) / "public" for task_id in sorted(self._cards)]
        folders += [task.public for task in self._found_competitions() if isinstance(task, Task)]
        return tuple(folder for folder in folders if folder.is_dir())

    def refused(self) -> tuple[RefusedCompetition, ...]:
        """Return the competitions that have data and are not served, with the reasons."""
        return tuple(
            found for found in self._found_competitions() if isinstance(found, RefusedCompetition)
        )

    def is_competition(self, task_id: str) -> bool:
        """Tell whether an id is that of a competition of MLE-bench and of nothing else."""
        return task_id in self._competitions.folders and task_id not in self._folders

    def _get_competition(self, task_id: str) -> Task:
        found = self.find_competition(task_id)
        if isinstance(found, RefusedCompetition):
            message = "the task is known but not served: `reward-server tasks check` says why"
            raise RequestError(ErrorKind.UNKNOWN_TASK, message)
        return found

    def _found_competitions(self) -> Iterator[Task | RefusedCompetition]:
        return map(self.find_competition, self._competitions.with_data())

    def find_competition(self, task_id: str) -> Task | RefusedCompetition:
        """Return a known competition as a task, or why it is not served."""
        if task_id in self._folders:
            return RefusedCompetition(
                task_id, f"the id is that of the task in {self._folders[task_id]}"
            )
        try:
            return self._competitions.get(task_id)
        except (SetupError, OSError) as error:
            return RefusedCompetition(task_id, str(error))

    def _prepared(self, task_id: str) -> Path:
        return self._data_dir / task_id / "prepared"

    def _board_files(self, task_id: str) -> tuple[Path, Path]:
        return self._data_dir / task_id / FILE_NAME, self._folders[task_id] / FILE_NAME
