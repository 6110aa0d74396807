"""Preparing the data of a task, from Kaggle's raw files or from a generated twin.

The new data is made in a private folder beside the old, read back and compared with its
checksums, and renamed to its final name, so that a reader sees either all of the old data or all
of the new. A twin's seed is drawn there; the seed and the raw files are deleted at the end.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reward_server.errors import ServiceError, SetupError
from reward_server.tasks import manifest as manifests
from reward_server.tasks.base import Source, TwinSize
from reward_server.tasks.folders import read_card
from reward_server.tasks.preparation.building import Done, building_in
from reward_server.tasks.preparation.durable_files import put_in_place
from reward_server.tasks.preparation.mlebench_checksums import compare_with_mlebench
from reward_server.tasks.preparation.raw_folder import find_raw_files, identify
from reward_server.tasks.preparation.steps import PreparationStage, PreparationStep, quiet
from reward_server.tasks.sdk.modules import load_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reward_server.tasks.base import Card
    from reward_server.tasks.preparation.building import Building
    from reward_server.tasks.preparation.steps import Report

_COUNTED_FILES = 50


@dataclass(frozen=True, slots=True)
class _Job:
    """One preparation: the task, the source of the data, and the progress callback."""

    folder: Path
    card: Card
    raw: Path | None
    size: TwinSize
    recipe: str
    report: Report

    @property
    def rows(self) -> int:
        """Return how many raw rows the twin has."""
        if self.card.twin is None:
            message = f"{self.card.id} has no twin: give its raw files"
            raise SetupError(message)
        return self.card.twin.of(self.size)

    def report_stage(self, stage: PreparationStage, detail: str = "") -> None:
        self.report(PreparationStep(self.card.id, stage, detail))

    def counter(self, stage: PreparationStage) -> Callable[[int, int], None]:
        def count(done: int, total: int) -> None:
            if done == total or done % _COUNTED_FILES == 0:
                self.report(PreparationStep(self.card.id, stage, "", done, total))

        return count


def prepare_task(
    folder: Path,
    data_dir: Path,
    *,
    raw: Path | None = None,
    size: TwinSize = TwinSize.SMALL,
    progress: Report = quiet,
) -> manifests.Manifest:
    """Prepare the task of a folder, replacing data prepared before; no `raw` means a twin.

    Raises:
        SetupError: when a raw file is missing, the folder is not a task, its own code fails,
            the disk is full, or another process prepares the task; the old data is kept.
    """
    card = read_card(folder)
    with _disk_errors_name_the_task(card.id):
        home = data_dir / card.id
        home.mkdir(parents=True, exist_ok=True)
        for traversed in (data_dir, home):
            traversed.chmod(0o755)
        job = _Job(folder, card, raw, size, make_recipe(folder, card, raw, size), progress)
        with building_in(home, job.recipe) as building:
            manifest = _make(job, building)
            put_in_place(building.prepared, home / "prepared")
        job.report_stage(PreparationStage.READY, _summary(job, manifest, home / "prepared"))
    return manifest


def find_unchanged(
    folder: Path, data_dir: Path, *, raw: Path | None = None, size: TwinSize = TwinSize.SMALL
) -> manifests.Manifest | None:
    """Return the manifest of data that preparing again would not change; a twin's seed aside.

    Raises:
        SetupError: when a raw file is missing or the folder is not a task.
    """
    card = read_card(folder)
    prepared = data_dir / card.id / "prepared"
    if not (prepared / manifests.NAME).is_file():
        return None
    recipe = make_recipe(folder, card, raw, size)
    try:
        manifest = manifests.read_manifest(prepared)
    except SetupError:
        return None
    is_same = manifest.recipe == recipe and manifests.record_files(prepared) == manifest.files
    return manifest if is_same else None


def make_recipe(folder: Path, card: Card, raw: Path | None, size: TwinSize) -> str:
    """Return the digest of all inputs: the files of the task, and the raw files or the twin size.

    Raises:
        SetupError: when a raw file is missing.
    """
    digest = hashlib.sha256(f"{manifests.FORMAT}\0".encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(folder)}\0{content}\n".encode())
    if raw is not None:
        digest.update(identify(raw, find_raw_files(raw, card.raw_files)).encode())
    else:
        digest.update(f"twin {size}".encode())
    return digest.hexdigest()


@contextmanager
def _disk_errors_name_the_task(task_id: str) -> Iterator[None]:
    """Turn a full disk, or a folder that is not ours, into an error that names the task."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        message = f"{task_id} is not prepared: {error.strerror or error}{where}"
        raise SetupError(message) from error


@contextmanager
def _task_code(job: _Job, name: str) -> Iterator[None]:
    """Turn whatever a task's own file raises into an error that names the file."""
    try:
        yield
    except (ServiceError, OSError):
        raise
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        message = f"{job.card.id}: {name} failed with {text}"
        raise SetupError(message) from error


def _make(job: _Job, building: Building) -> manifests.Manifest:
    """Do the stages that are not done yet."""
    if building.is_done(Done.RAW):
        job.report_stage(PreparationStage.RESUMED)
    if not building.is_done(Done.RAW):
        _find_raw(job, building)
        building.finish_raw()
    if not building.is_done(Done.SPLIT):
        _split(job, building)
        building.finish_split()
    if building.is_done(Done.ALL):
        manifest = manifests.read_manifest(building.prepared)
    else:
        manifest = _describe(job, building.prepared)
        _set_modes(building.prepared)
        building.finish_all(manifest.data_digest)
    _verify(job, building.prepared, manifest)
    return manifest


def _find_raw(job: _Job, building: Building) -> None:
    if job.raw is not None:
        job.report_stage(PreparationStage.RAW, str(job.raw))
        return
    job.report_stage(PreparationStage.TWIN, f"{job.rows:,} rows")
    raw = building.begin(building.raw)
    with _task_code(job, "twin.py"):
        twin = load_module(job.folder / "twin.py", "generate")
        twin.generate(raw, seed=building.state.seed, rows=job.rows)


def _split(job: _Job, building: Building) -> None:
    job.report_stage(PreparationStage.SPLIT)
    prepared = building.begin(building.prepared)
    public, private = prepared / "public", prepared / "private"
    public.mkdir()
    private.mkdir()
    with _task_code(job, "prepare.py"):
        module = load_module(job.folder / "prepare.py", "prepare")
        module.prepare(job.raw or building.raw, public, private)
    shutil.copyfile(job.folder / "description.md", public / "description.md")


def _describe(job: _Job, prepared: Path) -> manifests.Manifest:
    files = manifests.record_files(prepared, job.counter(PreparationStage.RECORD))
    for needed in (f"private/{job.card.answers}", f"public/{job.card.sample_submission}"):
        if needed not in files:
            message = f"{job.card.id}: prepare.py wrote no {needed}"
            raise SetupError(message)
    is_twin = job.raw is None
    manifest = manifests.Manifest(
        format=manifests.FORMAT,
        task_id=job.card.id,
        source=Source.TWIN if is_twin else Source.RAW,
        created=datetime.now(UTC),
        data_digest=manifests.digest_files(files),
        files=files,
        size=job.size if is_twin else None,
        rows=job.rows if is_twin else None,
        recipe=job.recipe,
        sample_score=_grade_sample(job, prepared),
    )
    manifests.write_manifest(prepared, manifest)
    return manifest


def _grade_sample(job: _Job, prepared: Path) -> float | None:
    """Return the score of the sample submission; our own file needs no grading process."""
    # Every start of a server would pay for the libraries that only a preparation needs.
    from reward_server.tasks.sdk.submission_table import Caps, read_table  # noqa: PLC0415
    from reward_server.tasks.sdk.tables import parse_csv  # noqa: PLC0415

    job.report_stage(PreparationStage.GRADE)
    sample = (prepared / "public" / job.card.sample_submission).read_bytes()
    answers = (prepared / "private" / job.card.answers).read_bytes()
    with warnings.catch_warnings(), _task_code(job, "grade.py"):
        warnings.simplefilter("ignore")
        task = load_module(job.folder / "grade.py", "align", "score")
        caps, expected = Caps.beside(answers, len(sample)), parse_csv(answers)
        try:
            truth, prediction = task.align(read_table(sample, caps), expected)
        except Exception:  # noqa: BLE001 -- a sample that its own task refuses has no score
            return None
        score = float(task.score(truth, prediction))
    return score if math.isfinite(score) else None


def _set_modes(prepared: Path) -> None:
    for path in prepared.rglob("*"):
        is_private = path.relative_to(prepared).parts[0] != "public"
        if path.is_dir():
            path.chmod(0o700 if is_private else 0o755)
        else:
            path.chmod(0o600 if is_private else 0o644)
    prepared.chmod(0o755)


def _verify(job: _Job, prepared: Path, manifest: manifests.Manifest) -> None:
    found = manifests.record_files(prepared, job.counter(PreparationStage.VERIFY))
    differing = sorted(
        path
        for path in manifest.files.keys() | found.keys()
        if manifest.files.get(path) != found.get(path)
    )
    if differing:
        message = f"{job.card.id}: {differing[0]} reads back differently from what was written"
        raise SetupError(message)


def _summary(job: _Job, manifest: manifests.Manifest, prepared: Path) -> str:
    note = None if job.raw is None else compare_with_mlebench(job.card.id, prepared)
    parts = (f"{len(manifest.files):,} files, data digest {manifest.data_digest[:12]}", note)
    return "; ".join(part for part in parts if part)
