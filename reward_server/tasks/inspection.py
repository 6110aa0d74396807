"""Checking prepared data before it is served: the bytes, the files, the sample, the leaks."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.grade.process import grade_file
from reward_server.tasks.competition import read_competition
from reward_server.tasks.folders import read_card
from reward_server.tasks.leaks import find_leaks
from reward_server.tasks.manifest import digest_files, read_manifest, record_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from reward_server.tasks.base import Card, Task


def check_task(folder: Path, data_dir: Path) -> tuple[str, ...]:
    """Return what is wrong with the prepared data of a task, one sentence each.

    Raises:
        SetupError: when the card or the manifest cannot be read.
    """
    card = read_card(folder)
    prepared = data_dir / card.id / "prepared"
    problems = (*_changed_files(prepared), *_unexpected_files(card, prepared))
    if problems:
        return problems
    answers = prepared / "private" / card.answers
    leaks = find_leaks(card, prepared / "public", answers)
    sample = prepared / "public" / card.sample_submission
    return (
        *_ungradable_sample(folder, sample, answers, has_score=card.baseline is None),
        *(f"leak in {leak.place}: {leak.reason}" for leak in leaks),
    )


def check_competition(task: Task) -> tuple[str, ...]:
    """Return what is wrong with a competition of MLE-bench: whether its own grader works here.

    The sample submission of some has no score, so the gold one will do.
    """
    problems: list[str] = []
    for control in read_competition(task.folder).controls(task.answers):
        found = tuple(_ungradable_sample(task.folder, control, task.answers))
        if not found:
            return ()
        problems.extend(f"{control.name}: {problem}" for problem in found)
    return tuple(problems)


def _changed_files(prepared: Path) -> Iterator[str]:
    manifest, found = read_manifest(prepared), record_files(prepared)
    for path in sorted(manifest.files.keys() | found.keys()):
        if path not in found:
            yield f"{path} is missing"
        elif path not in manifest.files:
            yield f"{path} is not in the manifest"
        elif found[path] != manifest.files[path]:
            yield f"{path} has changed since it was prepared"
    if digest_files(manifest.files) != manifest.data_digest:
        yield "the data digest does not belong to the manifest's files"


def _unexpected_files(card: Card, prepared: Path) -> Iterator[str]:
    public = prepared / "public"
    found = [
        PurePosixPath(path.relative_to(public).as_posix())
        for path in sorted(public.rglob("*"))
        if not path.is_dir()
    ]
    for path in found:
        if not _matches_any(path, card.public_files):
            yield f"public/{path} is not a file the card names"
    for pattern in card.public_files:
        if not any(_matches_any(path, [pattern]) for path in found):
            yield f"public/{pattern} is missing"


def _matches_any(path: PurePosixPath, patterns: Iterable[str]) -> bool:
    return any(
        len(path.parts) == len(PurePosixPath(pattern).parts) and path.match(pattern)
        for pattern in patterns
    )


def _ungradable_sample(
    folder: Path, sample: Path, answers: Path, *, has_score: bool = True
) -> Iterator[str]:
    try:
        grade = grade_file(folder, sample, answers)
    except InfrastructureError:
        yield "the grader fails on the sample submission"
        return
    if has_score and grade.failure is not None:
        yield "the sample submission is not valid"
