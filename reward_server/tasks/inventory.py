"""The digest of data prepared by MLE-bench, which may be too large to read as a whole.

It covers the content of the files that decide a score, and the names and sizes of the files
that programs see.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator

Version = tuple[tuple[int, int, int], ...]
_FOLDER_BITS = 0o005
_FILE_BITS = 0o004


def version(*paths: Path) -> Version:
    """Return what changes when one of these files or folders is replaced or written anew."""
    statuses = (path.stat() for path in paths if path.exists())
    return tuple((s.st_ino, s.st_mtime_ns, s.st_size) for s in statuses)


@functools.lru_cache(maxsize=1024)
def digest(whole: tuple[Path, ...], public: Path, _: Version) -> str:
    """Digest whole files and the inventory of a public folder, once per version of them.

    Raises:
        SetupError: when there is something public that programs cannot read.
    """
    found = hashlib.sha256()
    for path in whole:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    for name, size in sorted(_inventory(public)):
        found.update(f"{name}\0{size}\n".encode(errors="surrogateescape"))
    return found.hexdigest()


def _inventory(public: Path) -> Iterator[tuple[str, int]]:
    waiting = [str(public)]
    while waiting:
        folder = waiting.pop()
        _require_open(folder, os.stat(folder), _FOLDER_BITS, public)  # noqa: PTH116 -- many files
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield os.path.relpath(entry.path, public), _size(entry, public)


def _size(entry: os.DirEntry[str], public: Path) -> int:
    if entry.is_symlink():
        _require_inside(Path(entry.path), public)
    status = entry.stat()
    bits = _FOLDER_BITS if entry.is_dir() else _FILE_BITS
    _require_open(entry.path, status, bits, public)
    return status.st_size


def _require_inside(link: Path, public: Path) -> None:
    target = link.resolve()
    is_relative = not link.readlink().is_absolute()
    if not (is_relative and target.exists() and target.is_relative_to(public.resolve())):
        message = f"{link} is a link to nothing that programs can see: put the file in its place"
        raise SetupError(message)


def _require_open(path: str, status: os.stat_result, bits: int, public: Path) -> None:
    if status.st_mode & bits != bits:
        message = f"{path} is closed to the account programs run as: chmod -R o+rX {public}"
        raise SetupError(message)
