"""Preparing a task's data: from Kaggle's raw files, or from a twin made on the spot.

The new data is built in a closed folder beside the old and takes its place by a rename, so
that a reader sees all of one or all of the other. A twin's seed is drawn here and kept
nowhere; its raw files are deleted before the data is served.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.errors import SetupError
from reward_server.tasks import manifest as manifests
from reward_server.tasks.base import Source, TwinSize
from reward_server.tasks.folders import read_card
from reward_server.tasks.modules import load_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.tasks.base import Card

_SEED_BITS = 128


def _quiet(_: str) -> None:
    pass


def prepare_task(
    folder: Path,
    data_dir: Path,
    *,
    raw: Path | None = None,
    size: TwinSize = TwinSize.SMALL,
    progress: Callable[[str], None] = _quiet,
) -> manifests.Manifest:
    """Prepare the task of a folder, replacing data prepared before; no `raw` means a twin.

    Raises:
        SetupError: when a raw file is missing or the folder is not a task.
    """
    card = read_card(folder)
    home = data_dir / card.id
    home.mkdir(parents=True, exist_ok=True)
    for traversed in (data_dir, home):
        traversed.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=home) as name:
        building = Path(name)
        files = raw or _make_twin(folder, card, building, size, progress)
        prepared = _build(folder, card, building, files, progress)
        manifest = _describe(card, prepared, Source.TWIN if raw is None else Source.RAW)
        _set_modes(prepared)
        _replace(prepared, home / "prepared", building / "replaced")
    progress(f"{card.id}: ready, data digest {manifest.data_digest[:12]}")
    return manifest


def _build(
    folder: Path, card: Card, building: Path, raw: Path, progress: Callable[[str], None]
) -> Path:
    prepared = building / "prepared"
    public, private = prepared / "public", prepared / "private"
    public.mkdir(parents=True)
    private.mkdir()
    progress(f"{card.id}: splitting")
    load_module(folder / "prepare.py", "prepare").prepare(raw, public, private)
    shutil.copyfile(folder / "description.md", public / "description.md")
    return prepared


def _make_twin(
    folder: Path, card: Card, building: Path, size: TwinSize, progress: Callable[[str], None]
) -> Path:
    if card.twin is None:
        message = f"{card.id} has no twin: give its raw files"
        raise SetupError(message)
    rows, raw = card.twin.of(size), building / "raw"
    progress(f"{card.id}: making a twin of {rows} rows")
    raw.mkdir()
    twin = load_module(folder / "twin.py", "generate")
    twin.generate(raw, seed=secrets.randbits(_SEED_BITS), rows=rows)
    return raw


def _describe(card: Card, prepared: Path, source: Source) -> manifests.Manifest:
    files = manifests.record_files(prepared)
    for needed in (f"private/{card.answers}", f"public/{card.sample_submission}"):
        if needed not in files:
            message = f"{card.id}: prepare.py wrote no {needed}"
            raise SetupError(message)
    manifest = manifests.Manifest(
        format=manifests.FORMAT,
        task_id=card.id,
        source=source,
        created=datetime.now(UTC),
        data_digest=manifests.digest_files(files),
        files=files,
    )
    manifests.write_manifest(prepared, manifest)
    return manifest


def _set_modes(prepared: Path) -> None:
    for path in prepared.rglob("*"):
        is_private = path.relative_to(prepared).parts[0] != "public"
        if path.is_dir():
            path.chmod(0o700 if is_private else 0o755)
        else:
            path.chmod(0o600 if is_private else 0o644)
    prepared.chmod(0o755)


def _replace(new: Path, place: Path, replaced: Path) -> None:
    if place.exists():
        place.rename(replaced)
    try:
        new.rename(place)
    except OSError:
        replaced.rename(place)
        raise
