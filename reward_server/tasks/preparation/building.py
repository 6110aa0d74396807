"""The private folder in which the data of a task is made, one preparation at a time.

It has one name per task and records the last complete stage, so that the next preparation
resumes one that was killed. A folder that was begun from other files, another size or another
version of the task is removed, and so is every folder when its preparation ends normally.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from reward_server.errors import SetupError
from reward_server.tasks import manifest as manifests
from reward_server.tasks.preparation.durable_files import sync_tree, write_durably

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = ".building"
_LOCK = ".lock"
_STATE = "state.json"
_SEED_BITS = 128


class Done(IntEnum):
    """The last stage that is complete."""

    NOTHING = 0
    RAW = 1
    SPLIT = 2
    ALL = 3


@dataclass(frozen=True, slots=True)
class BuildState:
    """The content of `state.json`: the recipe, the last complete stage, a twin's secret seed."""

    recipe: str
    done: Done = Done.NOTHING
    seed: int | None = None
    data_digest: str | None = None


_STATES = TypeAdapter(BuildState)


class Building:
    """The folder of an unfinished preparation, and its state."""

    def __init__(self, path: Path, state: BuildState) -> None:
        self.path = path
        self.raw = path / "raw"
        self.prepared = path / "prepared"
        self.state = state

    def is_done(self, stage: Done) -> bool:
        """Tell whether a stage was completed, now or before an interruption."""
        return self.state.done >= stage

    def finish_raw(self) -> None:
        """Keep the raw files of a twin."""
        if self.raw.is_dir():
            sync_tree(self.raw)
        self._save(replace(self.state, done=Done.RAW))

    def finish_split(self) -> None:
        """Keep the public and private files."""
        sync_tree(self.prepared)
        self._save(replace(self.state, done=Done.SPLIT))

    def finish_all(self, data_digest: str) -> None:
        """Keep the data as it will be served, and forget what it was made from."""
        sync_tree(self.prepared)
        self._save(BuildState(self.state.recipe, Done.ALL, data_digest=data_digest))
        _remove(self.raw)

    def begin(self, folder: Path) -> Path:
        """Return a new empty folder for a stage, whatever an interrupted one left there."""
        _remove(folder)
        folder.mkdir(mode=0o700)
        return folder

    def _save(self, state: BuildState) -> None:
        write_durably(self.path / _STATE, json.dumps(asdict(state)))
        self.state = state


@contextmanager
def building_in(home: Path, recipe: str) -> Iterator[Building]:
    """Open the building folder of a task, new or interrupted, for one process alone.

    Raises:
        SetupError: when another process prepares the task.
    """
    with _locked(home):
        path = home / NAME
        try:
            yield Building(path, _resume_or_begin(path, recipe))
        finally:
            _discard(path)


def _resume_or_begin(path: Path, recipe: str) -> BuildState:
    """Return the state of an interrupted preparation, or of a new one."""
    state = _read_state(path)
    if state is None or not _can_resume(path, state, recipe):
        state = BuildState(recipe, seed=secrets.randbits(_SEED_BITS))
        _discard(path)
        path.mkdir(mode=0o700)
        write_durably(path / _STATE, json.dumps(asdict(state)))
    return state


def _can_resume(path: Path, state: BuildState, recipe: str) -> bool:
    if state.recipe != recipe:
        return False
    if state.done is not Done.ALL:
        return True
    try:
        return manifests.read_manifest(path / "prepared").data_digest == state.data_digest
    except SetupError:  # the data was renamed already, or this folder holds the old data
        return False


def _read_state(path: Path) -> BuildState | None:
    """Return the state in a building folder that only this account could have written."""
    try:
        about = path.lstat()
        if about.st_uid != os.geteuid() or (about.st_mode & 0o170777) != 0o040700:
            return None
        return _STATES.validate_json((path / _STATE).read_bytes())
    except (OSError, ValidationError):
        return None


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Hold the lock file of the task, which exists only while a process holds it."""
    path = home / _LOCK
    descriptor = _lock(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _lock(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            message = f"{path.parent.name} is being prepared by another process: wait for its end"
            raise SetupError(message) from None
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # its holder removed it between our opening and locking


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _discard(building: Path) -> None:
    """Remove a building folder, its state first: a half-removed one must not be resumed."""
    if building.is_dir() and not building.is_symlink():
        (building / _STATE).unlink(missing_ok=True)
    _remove(building)


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)
