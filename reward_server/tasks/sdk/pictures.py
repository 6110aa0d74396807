"""Raw pictures, in a folder or in the archive it is shipped as, copied one at a time."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, TypeAlias

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Opener: TypeAlias = "Callable[[str], IO[bytes]]"


def copy_pictures(raw: Path, folder: str, places: Mapping[str, Path]) -> None:
    """Copy each named file of a raw folder to its place, however deep it lies in there.

    Raises:
        SetupError: when the folder or a file is missing or the archive is damaged.
    """
    with _open_folder(raw, folder) as (paths, open_path):
        for name, place in places.items():
            if name not in paths:
                message = f"the raw file {folder}/{name} is missing"
                raise SetupError(message)
            with open_path(paths[name]) as source, place.open("wb") as target:
                shutil.copyfileobj(source, target)


@contextmanager
def _open_folder(raw: Path, folder: str) -> Iterator[tuple[dict[str, str], Opener]]:
    """Yield the paths of a folder's files by their names, and what opens a path."""
    if (raw / folder).is_dir():
        found = (path for path in (raw / folder).rglob("*") if path.is_file())
        yield {path.name: str(path) for path in found}, _open_file
    elif (raw / f"{folder}.zip").is_file():
        try:
            with zipfile.ZipFile(raw / f"{folder}.zip") as archive:
                members = (name for name in archive.namelist() if "__MACOSX" not in name)
                yield {PurePosixPath(name).name: name for name in members}, archive.open
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            message = f"the raw file {folder}.zip is damaged: {error}"
            raise SetupError(message) from error
    else:
        message = f"the raw folder {folder} is missing: it was sought as {folder}/ and {folder}.zip"
        raise SetupError(message)


def _open_file(path: str) -> IO[bytes]:
    return Path(path).open("rb")
