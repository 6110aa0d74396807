"""Kaggle's raw files, zipped or not, read in place: nothing is ever written beside them."""

from __future__ import annotations

import zipfile
import zlib
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from reward_server.errors import SetupError
from reward_server.tasks.sdk.tables import parse_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pandas as pd

_FIXED_DATE = (1980, 1, 1, 0, 0, 0)
_FEWEST_ROWS = 2


def read_raw(raw: Path, name: str, archives: Iterable[str] = ()) -> bytes:
    """Return a raw file, from the folder, from `<name>.zip`, or from one of the archives.

    Raises:
        SetupError: when it is in none of them, or its archive is damaged; the text names it.
    """
    for path in (raw / name, raw / name / name):
        if path.is_file():
            return path.read_bytes()
    candidates = [f"{name}.zip", *archives]
    for archive in candidates:
        if (raw / archive).is_file():
            with open_archive(raw / archive) as members:
                for member in _members_named(members, name):
                    return members.read(member)
    message = f"the raw file {name} is missing: it was sought as {', '.join([name, *candidates])}"
    raise SetupError(message)


def read_raw_csv(raw: Path, name: str, archives: Iterable[str] = ()) -> pd.DataFrame:
    """Return a raw table with floats exactly as they are written."""
    return parse_csv(read_raw(raw, name, archives))


def parse_raw_csv(data: bytes, name: str, columns: Iterable[str]) -> pd.DataFrame:
    """Return the table that a raw file is, with floats exactly as they are written.

    Raises:
        SetupError: when it is no table, lacks one of the columns or has less than two rows.
    """
    try:
        table = parse_csv(data)
    except ValueError as error:
        message = f"the raw file {name} is not a readable table: {error}"
        raise SetupError(message) from error
    missing = [column for column in columns if column not in table.columns]
    if missing:
        message = f"the raw file {name} has no column {missing[0]}"
        raise SetupError(message)
    if len(table) < _FEWEST_ROWS:
        message = f"the raw file {name} has less than two rows"
        raise SetupError(message)
    return table


def read_raw_tree(raw: Path, name: str, suffix: str) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the files of a raw folder, or of the archive it is shipped as, with their paths.

    Raises:
        SetupError: when neither is there, or the archive is damaged.
    """
    if (raw / name).is_dir():
        for path in sorted((raw / name).rglob(f"*{suffix}")):
            yield PurePosixPath(path.relative_to(raw).as_posix()), path.read_bytes()
    elif (raw / f"{name}.zip").is_file():
        with open_archive(raw / f"{name}.zip") as members:
            for member in sorted(members.namelist()):
                if member.endswith(suffix) and not is_debris(member):
                    yield PurePosixPath(member), members.read(member)
    else:
        message = f"the raw folder {name} is missing: it was sought as {name}/ and {name}.zip"
        raise SetupError(message)


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive for as long as its members are read.

    Raises:
        SetupError: when it, or a member that is read meanwhile, is damaged or encrypted.
    """
    try:
        with zipfile.ZipFile(path) as members:
            yield members
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        message = f"the archive {path.name} is not readable: {str(error) or 'it ends too early'}"
        raise SetupError(message) from error


def is_debris(member: str) -> bool:
    """Tell whether a member of an archive is something that only macOS put there."""
    return "__MACOSX" in member or member.endswith("/.DS_Store")


def write_zip(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write an archive whose bytes depend on nothing but its files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            member = zipfile.ZipInfo(name, _FIXED_DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, data)


def _members_named(members: zipfile.ZipFile, name: str) -> Iterator[str]:
    for member in members.namelist():
        if PurePosixPath(member).name == name and not is_debris(member):
            yield member
