"""The files of a public folder, what is packed in them at whatever nesting, and their metadata.

A member of an archive that unpacks to more than `MOST_UNPACKED_BYTES` is refused unread.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import warnings
import zipfile
import zlib
from base64 import b64decode
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, UnidentifiedImageError

from reward_server.tasks.leaks.report import unchecked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import IO, BinaryIO

    from reward_server.tasks.leaks.report import LeakFinding

MOST_FILES = 200_000
MOST_UNPACKED_BYTES = 64 << 20
IMAGES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"})
_MOST_MEMBERS = 50_000
_DEPTH = 3
_MOST_DESCRIBED_BYTES = 4 << 20
_MOST_LETTERS = 2_000
_COMMENT = re.compile(rb"^[ \t]*(?:#|//|;|%|--)(.*)$", re.MULTILINE)
_JPEG_END, _PNG_END = b"\xff\xd9", b"IEND\xaeB`\x82"
_LETTERS = re.compile(rb"[A-Za-z0-9+/]{8}")
_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]+")
_COMPRESSED: dict[bytes, Callable[[BinaryIO], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
_UNREADABLE = (b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")
_BROKEN = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError,
           zipfile.BadZipFile, NotImplementedError, RuntimeError)  # fmt: skip


class UnreadableArchiveError(Exception):
    """An archive that cannot or must not be unpacked; the text says why."""


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file, or a member of an archive: its name, its metadata, and its bytes."""

    name: str
    size: int
    seconds: float
    attributes: str
    open: Callable[[], BinaryIO]
    folder_seconds: float = 0.0

    def read(self, most: int = MOST_UNPACKED_BYTES) -> bytes:
        """Return the first bytes, at most so many."""
        with self.open() as stream:
            return stream.read(most)

    @property
    def suffix(self) -> str:
        """Return the ending of the name, in small letters."""
        last = self.name.rpartition("/")[2]
        return f".{last.rpartition('.')[2].lower()}" if "." in last else ""


def files_below(folder: Path) -> Iterator[PublicFile]:
    """Yield the files of a folder in the order of their names, at most so many."""
    for path in sorted(folder.rglob("*"))[:MOST_FILES]:
        if path.is_file():
            status, above = path.stat(), path.parent.stat()
            yield PublicFile(
                name=path.relative_to(folder).as_posix(),
                size=status.st_size,
                seconds=status.st_mtime,
                attributes=oct(status.st_mode & 0o7777),
                open=partial(_open, path),
                folder_seconds=above.st_mtime,
            )


def _open(path: Path) -> BinaryIO:
    return path.open("rb")


def unpack(
    files: Iterable[PublicFile], depth: int = _DEPTH
) -> tuple[list[PublicFile], list[LeakFinding]]:
    """Return files and what is packed in them, and notes on what cannot be unpacked."""
    found: list[PublicFile] = []
    notes: list[LeakFinding] = []
    for file in files:
        found.append(file)
        try:
            members = _members_of(file) if depth else []
        except UnreadableArchiveError as error:
            notes.append(unchecked(file.name, str(error)))
            continue
        inner = unpack(members, depth - 1) if members else ([], [])
        found += inner[0]
        notes += inner[1]
    return found, notes


def _members_of(file: PublicFile) -> list[PublicFile]:
    start = file.read(8)
    if start.startswith(_UNREADABLE):
        message = "an archive of a format that the lint does not unpack"
        raise UnreadableArchiveError(message)
    try:
        return list(_unpack_one(file, start))
    except _BROKEN as error:
        message = "an archive that cannot be read"
        raise UnreadableArchiveError(message) from error


def _unpack_one(file: PublicFile, start: bytes) -> Iterator[PublicFile]:
    if _LETTERS.fullmatch(start):
        yield from _decode(file)
    opener = next((x for magic, x in _COMPRESSED.items() if start.startswith(magic)), None)
    if start.startswith(b"PK\x03\x04"):
        yield from _unzip(file)
    elif opener is not None:
        inner = re.split(r"[/!]", file.name)[-1].rpartition(".")[0] or "content"
        with file.open() as packed:
            data = _read_bounded(opener(packed))
        if data[257:262] == b"ustar":
            yield from _untar(file, data)
        else:
            yield _member(file, inner, data)
    elif file.suffix == ".tar":
        yield from _untar(file, _read_bounded(file.open()))


def _member(file: PublicFile, name: str, data: bytes) -> PublicFile:
    opened = partial(io.BytesIO, data)
    return PublicFile(f"{file.name}!{name}", len(data), file.seconds, "", opened)


def _decode(file: PublicFile) -> Iterator[PublicFile]:
    """Yield what a file of nothing but base64 or hexadecimal letters holds."""
    if not 64 <= file.size <= MOST_UNPACKED_BYTES:
        return
    letters = b"".join(file.read().split())
    with suppress(ValueError):
        is_hex = _HEXADECIMAL.fullmatch(letters) is not None
        data = bytes.fromhex(letters.decode()) if is_hex else b64decode(letters, validate=True)
        yield _member(file, "decoded", data)


def _unzip(file: PublicFile) -> Iterator[PublicFile]:
    with file.open() as stream, zipfile.ZipFile(stream) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(entries) > _MOST_MEMBERS:
            message = f"an archive of {len(entries)} files"
            raise UnreadableArchiveError(message)
        for entry in entries:
            yield PublicFile(
                name=f"{file.name}!{entry.filename}",
                size=entry.file_size,
                seconds=datetime(*entry.date_time, tzinfo=UTC).timestamp(),
                attributes=f"{entry.comment!r} {entry.extra!r} {entry.external_attr} "
                f"{entry.compress_type}",
                open=partial(_open_entry, file, entry),
            )


def _open_entry(file: PublicFile, entry: zipfile.ZipInfo) -> BinaryIO:
    if entry.file_size > MOST_UNPACKED_BYTES:
        message = "a member that unpacks to too much"
        raise UnreadableArchiveError(message)
    with file.open() as stream, zipfile.ZipFile(stream) as archive:
        return io.BytesIO(_read_bounded(archive.open(entry)))


def _untar(file: PublicFile, data: bytes) -> Iterator[PublicFile]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                yield PublicFile(
                    name=f"{file.name}!{member.name}",
                    size=member.size,
                    seconds=member.mtime,
                    attributes=f"{member.uname} {member.uid} {member.mode}",
                    open=partial(io.BytesIO, stream.read()),
                )


def _read_bounded(stream: IO[bytes] | io.BufferedIOBase) -> bytes:
    with stream:
        data = stream.read(MOST_UNPACKED_BYTES + 1)
    if len(data) > MOST_UNPACKED_BYTES:
        message = "it unpacks to too much"
        raise UnreadableArchiveError(message)
    return data


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """What is known about a file beside its content, as written values by name.

    `hidden` must not be related to a label. `shown` may well be: the size of a file, the
    corners of a picture, a comment about the content.
    """

    shown: dict[str, str]
    hidden: dict[str, str] = field(default_factory=dict)


def describe_file(file: PublicFile) -> FileMetadata:
    """Return the metadata of a file."""
    size = {"size": str(file.size)}
    data = file.read(_MOST_DESCRIBED_BYTES)
    if file.suffix in IMAGES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _describe_image(data, size)
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
            return FileMetadata(size, {"coding": "broken"})
    if b"\0" in data[:1024]:
        return FileMetadata(size)
    text = data.rstrip()
    comments = b" ".join(_COMMENT.findall(data)).decode("utf-8", "replace")
    last = text.rpartition(b"\n")[2][-80:].decode("utf-8", "replace")
    marks = [mark in data for mark in (b"\r", b" \n", b"\t")]
    forms = repr((data[len(text) :], data[:3].isspace(), marks))
    return FileMetadata(size | {"comment": comments, "last line": last}, {"line ends": forms})


def _describe_image(data: bytes, size: dict[str, str]) -> FileMetadata:
    with Image.open(io.BytesIO(data)) as image:
        hidden = {
            "coding": f"{image.format} {image.mode} {getattr(image, 'quantization', '')}",
            "components": str(getattr(image, "layer", "")),
        }
        for key, value in (*image.info.items(), *image.getexif().items()):
            written = value.decode("latin-1") if isinstance(value, bytes) else str(value)
            hidden[f"metadata {key}"] = written[:_MOST_LETTERS]
        shown = size | {"shape": str(image.size), **_corners(image)}
    mark = _JPEG_END if data[:2] == b"\xff\xd8" else _PNG_END
    end = data.rfind(mark)
    hidden["end"] = data[end + len(mark) :][:200].hex() if end >= 0 else "none"
    hidden["end's length"] = str(len(data) - end)
    return FileMetadata(shown, hidden)


def _corners(image: Image.Image) -> dict[str, str]:
    """Return how much brighter each corner is than the picture, decoded as small as can be."""
    image.draft("L", (image.width // 8, image.height // 8))
    pixels = np.asarray(image.convert("L"), dtype=np.float64)
    wide = max(1, pixels.shape[0] // 64)
    first, last = slice(None, wide), slice(-wide, None)
    sides = {"upper": first, "lower": last}, {"left": first, "right": last}
    return {
        f"{vertical} {horizontal} corner": f"{pixels[rows, columns].mean() - pixels.mean():.1f}"
        for vertical, rows in sides[0].items()
        for horizontal, columns in sides[1].items()
    }
