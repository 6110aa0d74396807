"""Checking prepared data before it is served: the bytes, the files, the sample, the leaks."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from reward_server.errors import InfrastructureError
from reward_server.tasks.folders import read_card
from reward_server.tasks.leaks import check_leaks
from reward_server.tasks.leaks.bundled import check_bundled
from reward_server.tasks.leaks.lint import check_sample
from reward_server.tasks.leaks.report import LeakCheck, LeakFinding, LeakReport, fault
from reward_server.tasks.manifest import digest_files, read_manifest, record_files
from reward_server.tasks.sdk.competition import read_competition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from reward_server.model import Grade
    from reward_server.tasks.base import Card, Task
    from reward_server.tasks.registry import RefusedCompetition


GradeSubmissions: TypeAlias = "Callable[[Path, Path, Iterable[bytes | None]], list[Grade]]"
"""Grades submissions of the task in a folder against its answers."""


def inspect_task(
    folder: Path, data_dir: Path, grade: GradeSubmissions, environment: Path | None = None
) -> LeakReport:
    """Check the prepared data of a task; `environment` is what programs may import.

    Damaged data is not checked for leaks: it is not the data that would be served.

    Raises:
        SetupError: when the card or the manifest cannot be read.
    """
    card = read_card(folder)
    prepared = data_dir / card.id / "prepared"
    public, answers = prepared / "public", prepared / "private" / card.answers
    whole = (_check_bytes(prepared), _check_names(card, public))
    if any(check.failed for check in whole):
        return LeakReport(card.id, whole)
    return LeakReport(
        card.id,
        (
            *whole,
            *check_leaks(card, public, answers),
            check_sample(card, public, partial(grade, folder, answers)),
            check_bundled(card, public, answers, environment),
        ),
    )


def inspect_competition(task: Task, grade: GradeSubmissions) -> LeakReport:
    """Check whether the own grader of a competition of MLE-bench works here.

    Some sample submissions have no score; then the gold submission must have one.
    """
    findings: list[LeakFinding] = []
    for control in read_competition(task.folder).controls(task.answers):
        found = tuple(_find_ungradable(task, control, grade))
        if not found:
            findings = []
            break
        findings += found
    return LeakReport(
        task.card.id, (LeakCheck("grader", "on what it should take", tuple(findings)),)
    )


def refuse_competition(refused: RefusedCompetition) -> LeakReport:
    """Report why a competition of MLE-bench is not served."""
    check = LeakCheck("competition", "data and settings", (fault(refused.task_id, refused.reason),))
    return LeakReport(refused.task_id, (check,))


def _check_bytes(prepared: Path) -> LeakCheck:
    findings = tuple(_changed_files(prepared))
    return LeakCheck("checksums", "every file against the manifest", findings)


def _changed_files(prepared: Path) -> Iterator[LeakFinding]:
    manifest, found = read_manifest(prepared), record_files(prepared)
    for path in sorted(manifest.files.keys() | found.keys()):
        if path not in found:
            yield fault(path, "it is missing")
        elif path not in manifest.files:
            yield fault(path, "it is not in the manifest")
        elif found[path] != manifest.files[path]:
            yield fault(path, "it has changed since it was prepared")
    if digest_files(manifest.files) != manifest.data_digest:
        yield fault("manifest.json", "the data digest does not belong to the manifest's files")


def _check_names(card: Card, public: Path) -> LeakCheck:
    findings = tuple(_unexpected_files(card, public))
    return LeakCheck("names of files", f"{len(card.public_files)} patterns of the card", findings)


def _unexpected_files(card: Card, public: Path) -> Iterator[LeakFinding]:
    found = [
        PurePosixPath(path.relative_to(public).as_posix())
        for path in sorted(public.rglob("*"))
        if not path.is_dir()
    ]
    for path in found:
        if not _matches_any(path, card.public_files):
            yield fault(f"public/{path}", "it is not a file the card names")
    for pattern in card.public_files:
        if not any(_matches_any(path, [pattern]) for path in found):
            yield fault(f"public/{pattern}", "it is missing")


def _matches_any(path: PurePosixPath, patterns: Iterable[str]) -> bool:
    return any(
        len(path.parts) == len(PurePosixPath(pattern).parts) and path.match(pattern)
        for pattern in patterns
    )


def _find_ungradable(task: Task, control: Path, grade: GradeSubmissions) -> Iterator[LeakFinding]:
    data = control.read_bytes() if control.is_file() else None
    try:
        (found,) = grade(task.folder, task.answers, [data])
    except InfrastructureError:
        yield fault(control.name, "the grader fails on it")
        return
    if found.failure is not None:
        yield fault(control.name, "it is not valid")
