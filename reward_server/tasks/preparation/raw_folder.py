"""Checking a raw folder before any work: does it have every file that the card names?

A name is found as a file, in a folder of its own name (as some unpackers leave it), or in an
archive directly in the folder. This module opens archives only; `sdk.raw` reads the files.
"""

from __future__ import annotations

import fnmatch
import hashlib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from reward_server.errors import SetupError
from reward_server.tasks.sdk.raw import is_debris

if TYPE_CHECKING:
    from collections.abc import Iterable

_LISTED = 12


def find_raw_files(raw: Path, names: Iterable[str]) -> tuple[Path, ...]:
    """Return the files and archives that hold the raw files of a card.

    Raises:
        SetupError: when the folder cannot be read or a file is missing; the text names the
            missing ones and what was found instead.
    """
    if not raw.is_dir():
        why = "is not a folder" if raw.exists() else "does not exist"
        message = f"{raw} {why}: --raw wants the folder with Kaggle's files"
        raise SetupError(message)
    try:
        folder = _Folder(raw, sorted(raw.iterdir()))
        found_by_name = {name: folder.find(name) for name in names}
    except OSError as error:
        message = f"the raw folder {raw} cannot be read: {error.strerror or error}"
        raise SetupError(message) from error
    missing = [name for name, found in found_by_name.items() if not found]
    if missing:
        raise SetupError(_explain(missing, folder))
    return tuple(dict.fromkeys(path for found in found_by_name.values() for path in found))


def identify(raw: Path, files: Iterable[Path]) -> str:
    """Return what changes when any of the files does, without reading them."""
    digest = hashlib.sha256(str(raw.resolve()).encode())
    for path in sorted(files):
        about = path.stat()
        digest.update(f"\0{path.relative_to(raw)}\0{about.st_size}\0{about.st_mtime_ns}".encode())
    return digest.hexdigest()


@dataclass(slots=True)
class _Folder:
    path: Path
    entries: list[Path]
    broken: list[str] = field(default_factory=list)
    members: dict[Path, tuple[str, ...]] = field(default_factory=dict)

    def find(self, name: str) -> list[Path]:
        if name.endswith(".zip"):
            if (self.path / name).is_file():
                return [self.path / name]
            name = name.removesuffix(".zip")
        return self._find_unpacked(PurePosixPath(name)) or self._find_packed(PurePosixPath(name))

    def _find_unpacked(self, name: PurePosixPath) -> list[Path]:
        fixed = [part for part in name.parts if not _is_pattern(part)]
        if len(fixed) < len(name.parts):
            top = self.path / fixed[0] if not _is_pattern(name.parts[0]) else self.path
            return sorted(path for path in top.rglob(name.name) if path.is_file())
        paths = (self.path / name, self.path / name / name.name)
        if name.suffix:
            return [path for path in paths if path.is_file()][:1]
        return sorted(path for path in paths[0].rglob("*") if path.is_file())

    def _find_packed(self, name: PurePosixPath) -> list[Path]:
        first = (f"{name.name}.zip", f"{name.parts[0]}.zip", f"{name.stem}.zip")
        archives = [path for path in self.entries if path.suffix == ".zip" and path.is_file()]
        archives.sort(key=lambda path: path.name not in first)
        for archive in archives:
            names = self._members(archive)
            if name.suffix == "" and archive.name == first[0] and names:
                return [archive]
            if any(fnmatch.fnmatchcase(member, name.name) for member in names):
                return [archive]
        return []

    def _members(self, archive: Path) -> tuple[str, ...]:
        if archive not in self.members:
            try:
                with zipfile.ZipFile(archive) as content:
                    names = [name for name in content.namelist() if not is_debris(name)]
            except (zipfile.BadZipFile, ValueError, NotImplementedError):
                names = []
                self.broken.append(archive.name)
            self.members[archive] = tuple(name.rpartition("/")[2] for name in names)
        return self.members[archive]


def _is_pattern(part: str) -> bool:
    return any(sign in part for sign in "*?[")


def _explain(missing: list[str], folder: _Folder) -> str:
    names = [f"{path.name}/" if path.is_dir() else path.name for path in folder.entries]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    held = f"there are {', '.join(names[:_LISTED])}{more}" if names else "it is empty"
    broken = "".join(f"; {name} is not a readable archive" for name in folder.broken)
    what = "the raw file" if len(missing) == 1 else "raw files"
    verb = "is" if len(missing) == 1 else "are"
    shown = ", ".join(missing[:_LISTED])
    return f"{what} {shown} {verb} missing from {folder.path}, also zipped: {held}{broken}"
