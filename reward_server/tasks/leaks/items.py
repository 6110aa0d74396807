"""The files of a public folder and what is packed in them, each opened only as far as allowed.

A member of an archive that unpacks to far more than it should is refused unread and said to
be so.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from base64 import b64decode
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO

MOST_FILES = 200_000
MOST_MEMBERS = 50_000
MOST_UNPACKED_BYTES = 64 << 20
_LETTERS = re.compile(rb"[A-Za-z0-9+/]{8}")
_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]+")
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
IMAGES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"})
_SEALED = (b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")
_BROKEN = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError,
          zipfile.BadZipFile, NotImplementedError, RuntimeError)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """A file, or a member of an archive: its name, what is known about it, and its bytes."""

    name: str
    size: int
    seconds: float
    about: str
    open: Callable[[], IO[bytes]]
    folder_seconds: float = 0.0

    def read(self, most: int = MOST_UNPACKED_BYTES) -> bytes:
        """Return the first bytes, at most so many."""
        with self.open() as file:
            return file.read(most)

    @property
    def suffix(self) -> str:
        """Return the ending of the name, in small letters."""
        last = self.name.rpartition("/")[2]
        return f".{last.rpartition('.')[2].lower()}" if "." in last else ""


def files_below(folder: Path) -> Iterator[Item]:
    """Yield the files of a folder in the order of their names, at most so many."""
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if number >= MOST_FILES:
            return
        if path.is_file():
            status = path.stat()
            about = oct(status.st_mode & 0o7777)
            name = path.relative_to(folder).as_posix()
            folder_seconds = path.parent.stat().st_mtime
            yield Item(
                name, status.st_size, status.st_mtime, about, partial(_open, path), folder_seconds
            )


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


class SealedError(Exception):
    """An archive that cannot or must not be unpacked; the text says why."""


def members_of(item: Item) -> list[Item]:
    """Return what is packed in an archive; nothing for other files.

    Raises:
        SealedError: when it cannot be unpacked, or unpacks to far too much.
    """
    start = item.read(8)
    if start.startswith(_SEALED):
        message = "an archive of a form that is not looked into"
        raise SealedError(message)
    try:
        return list(_members(item, start))
    except _BROKEN as error:
        message = "an archive that cannot be read"
        raise SealedError(message) from error


def _members(item: Item, start: bytes) -> Iterator[Item]:
    if _LETTERS.fullmatch(start):
        yield from _decoded(item)
    if start.startswith(b"PK\x03\x04"):
        yield from _zipped(item)
        return
    if start.startswith(_PACKED):
        inner = re.split(r"[/!]", item.name)[-1].rpartition(".")[0] or "content"
        yield from _tarred_or_plain(f"{item.name}!{inner}", _unpacked(item, start), item)
    elif item.suffix == ".tar":
        yield from _tarred_or_plain(item.name, _bounded(item.open()), item)


def _decoded(item: Item) -> Iterator[Item]:
    """Yield what a file of nothing but base64 or hexadecimal letters says."""
    if not 64 <= item.size <= MOST_UNPACKED_BYTES:
        return
    letters = b"".join(item.read().split())
    with suppress(ValueError):
        is_hex = _HEXADECIMAL.fullmatch(letters) is not None
        data = bytes.fromhex(letters.decode()) if is_hex else b64decode(letters, validate=True)
        opened = partial(io.BytesIO, data)
        yield Item(f"{item.name}!decoded", len(data), item.seconds, "", opened)


def _unpacked(item: Item, start: bytes) -> bytes:
    with item.open() as file:
        if start.startswith(b"BZh"):
            return _bounded(bz2.BZ2File(file))
        if start.startswith(b"\xfd7zXZ"):
            return _bounded(lzma.LZMAFile(file))
        return _bounded(gzip.GzipFile(fileobj=file))


def _zipped(item: Item) -> Iterator[Item]:
    with item.open() as file, zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(entries) > MOST_MEMBERS:
            message = f"an archive of {len(entries)} files"
            raise SealedError(message)
        for entry in entries:
            when = datetime(*entry.date_time, tzinfo=UTC).timestamp()
            about = f"{entry.comment!r} {entry.extra!r} {entry.external_attr} {entry.compress_type}"

            def unpack(entry: zipfile.ZipInfo = entry) -> IO[bytes]:
                if entry.file_size > MOST_UNPACKED_BYTES:
                    message = "a member that unpacks to too much"
                    raise SealedError(message)
                with item.open() as packed, zipfile.ZipFile(packed) as reopened:
                    return io.BytesIO(_bounded(reopened.open(entry)))

            yield Item(f"{item.name}!{entry.filename}", entry.file_size, when, about, unpack)


def _tarred_or_plain(name: str, data: bytes, item: Item) -> Iterator[Item]:
    if data[257:262] != b"ustar":
        yield Item(name, len(data), item.seconds, "", partial(io.BytesIO, data))
        return
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                content, about = file.read(), f"{member.uname} {member.uid} {member.mode}"
                full = f"{item.name}!{member.name}"
                yield Item(
                    full,
                    member.size,
                    member.mtime,
                    about,
                    partial(io.BytesIO, content),
                )


def _bounded(file: IO[bytes] | io.BufferedIOBase) -> bytes:
    with file:
        data = file.read(MOST_UNPACKED_BYTES + 1)
    if len(data) > MOST_UNPACKED_BYTES:
        message = "it unpacks to too much"
        raise SealedError(message)
    return data
