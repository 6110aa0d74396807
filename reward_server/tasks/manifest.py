"""The manifest of prepared data: the checksum of each file, and one digest of them all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 -- pydantic reads the fields' types
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, TypeAdapter, ValidationError

from reward_server.errors import SetupError
from reward_server.tasks.base import Source, TwinSize  # noqa: TC001 -- as above
from reward_server.tasks.preparation.durable_files import write_durably

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMAT = 1
NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The checksum and size of one prepared file."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `manifest.json`, which describes the data beside it.

    `size` and `rows` are those of a twin, `recipe` is the digest of all inputs, and `sample_score`
    is the score of the sample submission, if that is a number.
    """

    format: int
    task_id: str
    source: Source
    created: datetime
    data_digest: str
    files: dict[str, FileRecord]
    size: TwinSize | None = None
    rows: int | None = None
    recipe: str | None = None
    sample_score: Annotated[float, Field(allow_inf_nan=False)] | None = None


_MANIFESTS = TypeAdapter(Manifest)


def _ignore(done: int, total: int) -> None:
    del done, total


def record_files(
    prepared: Path, count: Callable[[int, int], None] = _ignore
) -> dict[str, FileRecord]:
    """Return the checksum and size of every public and private file, by relative path."""
    paths = [path for side in ("public", "private") for path in (prepared / side).rglob("*")]
    files = sorted(path for path in paths if not path.is_dir())
    records = {}
    for number, path in enumerate(files, start=1):
        records[path.relative_to(prepared).as_posix()] = _record(path)
        count(number, len(files))
    return records


def digest_files(files: dict[str, FileRecord]) -> str:
    """Return one SHA-256 over all paths and checksums."""
    lines = (f"{path}\0{record.sha256}\n" for path, record in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def write_manifest(prepared: Path, manifest: Manifest) -> None:
    """Write the manifest beside the public and private folders."""
    text = json.dumps(_MANIFESTS.dump_python(manifest, mode="json"), indent=1)
    write_durably(prepared / NAME, text + "\n")


def read_manifest(prepared: Path) -> Manifest:
    """Read the manifest of prepared data.

    Raises:
        SetupError: when it is missing, damaged or of another format.
    """
    try:
        manifest = _MANIFESTS.validate_json((prepared / NAME).read_bytes())
    except (OSError, ValidationError) as error:
        message = f"{prepared} has no readable manifest: prepare the task again"
        raise SetupError(message) from error
    if manifest.format != FORMAT:
        message = f"{prepared} was prepared in another format: prepare the task again"
        raise SetupError(message)
    return manifest


def _record(path: Path) -> FileRecord:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return FileRecord(sha256=digest.hexdigest(), size=path.stat().st_size)
