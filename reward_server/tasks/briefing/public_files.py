"""The files that a program sees: names, sizes and first bytes.

Only regular files below one folder are listed; links are neither followed nor listed. Only the
head of a file is read, except to count its rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HEAD_BYTES = 2 << 20
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileGroup:
    """A file, or all files that match one pattern of the card."""

    name: str
    paths: tuple[str, ...]
    size: int

    @property
    def is_pattern(self) -> bool:
        """Tell whether it is a pattern of many files."""
        return "*" in self.name


def group_files(public: Path, patterns: Iterable[str]) -> tuple[FileGroup, ...]:
    """Return the files of a public folder, by the patterns of the card and then by name."""
    sizes = dict(sorted(_walk(public, "")))
    groups = []
    for pattern in sorted(set(patterns)):
        paths = [path for path in sizes if _matches(path, pattern)]
        if paths:
            groups.append(FileGroup(pattern, tuple(paths), sum(sizes.pop(path) for path in paths)))
    return (*groups, *(FileGroup(path, (path,), size) for path, size in sizes.items()))


def read_head(path: Path, most: int = HEAD_BYTES) -> bytes:
    """Return how a file begins."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)


def count_records(path: Path) -> int:
    """Return how many lines a table has, its header too, where a quoted line end is none."""
    records, is_quoted, last = 0, False, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            pieces = chunk.split(b'"') if is_quoted or b'"' in chunk else [chunk]
            records += sum(piece.count(b"\n") for piece in pieces[is_quoted::2])
            is_quoted ^= len(pieces) % 2 == 0
            last = chunk[-1:]
    return records + (last != b"\n")


def first_records(head: bytes, most: int) -> list[str]:
    """Return the first lines of a table, where a quoted line end is none."""
    records: list[str] = []
    is_open = False
    for line in head.decode("utf-8", "replace").splitlines():
        if is_open:
            records[-1] += f"\n{line}"
        elif len(records) == most:
            break
        else:
            records.append(line)
        is_open ^= line.count('"') % 2 == 1
    return records


def _walk(folder: Path, prefix: str) -> Iterable[tuple[str, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + os.fsencode(entry.name).decode("utf-8", "replace")
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder / entry.name, f"{name}/")
            elif entry.is_file(follow_symlinks=False):
                yield name, entry.stat(follow_symlinks=False).st_size


def _matches(path: str, pattern: str) -> bool:
    parts = PurePosixPath(path).parts
    return len(parts) == len(PurePosixPath(pattern).parts) and PurePosixPath(path).match(pattern)
