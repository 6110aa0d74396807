"""Kaggle's raw files: tables, folders and pictures, zipped or not.

They are read in place, and nothing is ever written beside them. Floats stay exactly as they are
written.
"""

from __future__ import annotations

import io
import shutil
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, TypeAlias

import pandas as pd
from pandas.api.types import is_integer_dtype

from reward_server.errors import SetupError
from reward_server.tasks.sdk.tables import PRECISION, parse_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

FileOpener: TypeAlias = "Callable[[str], IO[bytes]]"
CHUNK_ROWS = 250_000
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
                for member in members.namelist():
                    if PurePosixPath(member).name == name and not is_debris(member):
                        return members.read(member)
    message = f"the raw file {name} is missing: it was sought as {', '.join([name, *candidates])}"
    raise SetupError(message)


def read_raw_csv(raw: Path, name: str, archives: Iterable[str] = ()) -> pd.DataFrame:
    """Return a raw table."""
    return parse_csv(read_raw(raw, name, archives))


def parse_raw_csv(data: bytes, name: str, columns: Iterable[str]) -> pd.DataFrame:
    """Return the table in a raw file.

    Raises:
        SetupError: when it is no table, lacks one of the columns or has less than two rows.
    """
    with _reading_table(name):
        return _require_columns(parse_csv(data), name, columns)


def read_large_csv(
    raw: Path, name: str, archives: Iterable[str], columns: Iterable[str]
) -> pd.DataFrame:
    """Return a raw table of millions of rows in little memory.

    Whole numbers take as few bytes as they need; written out again they look the same.

    Raises:
        SetupError: when it is missing, is no table, lacks a column or has less than two rows.
    """
    data = io.BytesIO(read_raw(raw, name, archives))
    with _reading_table(name):
        chunks = pd.read_csv(
            data, float_precision=PRECISION, compression=None, chunksize=CHUNK_ROWS
        )
        table = pd.concat(map(_narrow, chunks), ignore_index=True)
        return _require_columns(table, name, columns)


@contextmanager
def _reading_table(name: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        message = f"the raw file {name} is not a readable table: {error}"
        raise SetupError(message) from error


def _require_columns(table: pd.DataFrame, name: str, columns: Iterable[str]) -> pd.DataFrame:
    missing = [column for column in columns if column not in table.columns]
    if missing:
        message = f"the raw file {name} has no column {missing[0]}"
        raise SetupError(message)
    if len(table) < _FEWEST_ROWS:
        message = f"the raw file {name} has less than two rows"
        raise SetupError(message)
    return table


def _narrow(chunk: pd.DataFrame) -> pd.DataFrame:
    whole = [name for name in chunk if is_integer_dtype(chunk[name].dtype)]
    return chunk.assign(
        **{str(name): pd.to_numeric(chunk[name], downcast="integer") for name in whole}
    )


def copy_pictures(raw: Path, folder: str, targets: Mapping[str, Path]) -> None:
    """Copy each named file of a raw folder, at whatever depth, to its target.

    Raises:
        SetupError: when the folder or a file is missing or the archive is damaged.
    """
    with _open_folder(raw, folder) as (paths, open_path):
        found = {PurePosixPath(path).name: path for path in paths}
        for name, place in targets.items():
            if name not in found:
                message = f"the raw file {folder}/{name} is missing"
                raise SetupError(message)
            with open_path(found[name]) as source, place.open("wb") as target:
                shutil.copyfileobj(source, target)


def read_raw_tree(raw: Path, name: str, suffix: str) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the files of a raw folder, or of the archive it is shipped as, with their paths.

    Raises:
        SetupError: when neither is there, or the archive is damaged.
    """
    with _open_folder(raw, name) as (paths, open_path):
        for path in sorted(path for path in paths if path.endswith(suffix)):
            with open_path(path) as file:
                yield PurePosixPath(path), file.read()


@contextmanager
def _open_folder(raw: Path, folder: str) -> Iterator[tuple[list[str], FileOpener]]:
    """Yield the paths of a folder's files, or of its archive's members, and what opens them."""
    if (raw / folder).is_dir():
        files = (path for path in (raw / folder).rglob("*") if path.is_file())
        yield (
            [path.relative_to(raw).as_posix() for path in files],
            lambda path: (raw / path).open("rb"),
        )
        return
    if not (raw / f"{folder}.zip").is_file():
        message = f"the raw folder {folder} is missing: it was sought as {folder}/ and {folder}.zip"
        raise SetupError(message)
    with open_archive(raw / f"{folder}.zip") as archive:
        yield [name for name in archive.namelist() if not is_debris(name)], archive.open


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
