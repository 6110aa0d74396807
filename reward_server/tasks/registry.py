"""The tasks this server knows, and those whose data it can serve.

An id that a client sends is a key of a dictionary and never a part of a path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.errors import RequestError
from reward_server.model import ErrorKind
from reward_server.tasks.base import Card, Task
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.manifest import NAME, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Registry:
    """Looks tasks up by id; data that is prepared anew is noticed by its manifest."""

    def __init__(self, data_dir: Path, folders: Iterable[Path] = ()) -> None:
        self._data_dir = data_dir
        self._folders = find_folders(folders)
        self._loaded: dict[str, tuple[tuple[int, int], Task]] = {}
        self._cards = {task_id: read_card(path) for task_id, path in self._folders.items()}

    def cards(self) -> tuple[Card, ...]:
        """Return the card of every known task, prepared or not."""
        return tuple(self._cards[task_id] for task_id in sorted(self._cards))

    def folder(self, task_id: str) -> Path:
        """Return the folder of a known task.

        Raises:
            RequestError: `unknown_task`.
        """
        if task_id not in self._folders:
            message = "there is no such task"
            raise RequestError(ErrorKind.UNKNOWN_TASK, message)
        return self._folders[task_id]

    def get(self, task_id: str) -> Task:
        """Return a task that can be served.

        Raises:
            RequestError: `unknown_task` when it is not known or not prepared.
            SetupError: when its manifest is damaged.
        """
        self.folder(task_id)
        try:
            status = (self._prepared(task_id) / NAME).stat()
        except FileNotFoundError:
            message = "the task is known but not prepared on this server"
            raise RequestError(ErrorKind.UNKNOWN_TASK, message) from None
        version = status.st_ino, status.st_mtime_ns
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
        )

    def prepared(self) -> tuple[Task, ...]:
        """Return every task that can be served."""
        return tuple(self.get(task_id) for task_id in self.prepared_ids())

    def prepared_ids(self) -> list[str]:
        """Return the ids of the tasks whose data is here, without a look into it."""
        return [i for i in sorted(self._cards) if (self._prepared(i) / NAME).is_file()]

    def public_folders(self) -> tuple[Path, ...]:
        """Return the folders that programs of prepared tasks see."""
        folders = (self._prepared(task_id) / "public" for task_id in sorted(self._cards))
        return tuple(folder for folder in folders if folder.is_dir())

    def _prepared(self, task_id: str) -> Path:
        return self._data_dir / task_id / "prepared"
