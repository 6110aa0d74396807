"""Writing so that a power cut finds all of the old or all of the new."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_THREADS = 8  # file systems commit what several wait for at once


def sync_tree(folder: Path) -> None:
    """Have every file and folder below a folder, and itself, reach the disk."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(sync, [*folder.rglob("*"), folder]):
            pass


def sync(path: Path) -> None:
    """Have one file's content, or one folder's names, reach the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, text: str) -> None:
    """Replace a small file as a whole."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    sync(new)
    new.replace(path)
    sync(path.parent)


def put_in_place(new: Path, place: Path) -> None:
    """Give a folder its name; one that has the name takes the new one's instead.

    Where the file system cannot swap names, there is a moment without either.
    """
    if not place.exists():
        new.rename(place)
    elif not _exchange(new, place):
        aside = new.with_name(f"{new.name}.replaced")
        place.rename(aside)
        try:
            new.rename(place)
        except OSError:
            aside.rename(place)
            raise
    sync(place.parent)
    sync(new.parent)


def _exchange(one: Path, other: Path) -> bool:
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = os.fsencode(one), os.fsencode(other)
    return (
        rename is not None
        and rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0
    )
