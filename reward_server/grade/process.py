"""The grader of the pipeline: a pool of grading processes, and fixed error texts.

No text that a process reports ever reaches a client: it goes to the server's log.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypedDict

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind, Failure, Grade
from reward_server.subprocess_pool import NoAnswerError, SubprocessPool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    from reward_server.model import Execution
    from reward_server.tasks.base import Task

log = logging.getLogger(__name__)

NO_SUBMISSION = Failure(ErrorKind.NO_SUBMISSION, "the program left no submission.csv")
INVALID_SUBMISSION = Failure(
    ErrorKind.INVALID_SUBMISSION, "submission.csv does not have the form the task asks for"
)
_GRADER_ERROR = "the submission could not be graded"
_FILE_BYTES = 64 << 20
_START_SECONDS = 30.0  # a new process first imports its libraries


@dataclass(frozen=True, slots=True)
class GradingLimits:
    """The resource limits for grading one submission."""

    wall_seconds: float = 60.0
    cpu_seconds: int = 30
    memory_bytes: int = 4 << 30


class GradedCase(TypedDict):
    """The result of one case folder."""

    path: str
    valid: bool | None
    score: float | None


class ProcessGrader:
    """Grades in up to `size` processes at once, none of which ever runs a program."""

    def __init__(self, size: int = 1, limits: GradingLimits | None = None) -> None:
        self._limits = limits or GradingLimits()
        self._pool = SubprocessPool("reward_server.grade.child", size)

    async def start(self) -> None:
        """Start every grading process now instead of at its first submission."""
        await self._pool.start()

    async def grade(self, execution: Execution, task: Task) -> Grade:
        """Grade the artifact of an execution; a failed execution keeps its failure.

        Raises:
            InfrastructureError: `grader_error` when the fault is the grader's own.
        """
        if execution.failure is not None:
            return Grade(None, execution.failure)
        return await self.grade_bytes(
            execution.artifact, task.folder, task.answers, task.card.artifact_bytes
        )

    async def grade_bytes(
        self, submission: bytes | None, folder: Path, answers: Path, file_bytes: int
    ) -> Grade:
        """Grade the bytes of a submission, if there is one, against an answers file.

        Raises:
            InfrastructureError: `grader_error` when the fault is the grader's own.
        """
        if submission is None:
            return Grade(None, NO_SUBMISSION)
        if len(submission) > file_bytes:
            return Grade(None, INVALID_SUBMISSION)
        question = {
            "folder": str(folder),
            "answers": str(answers),
            "file_bytes": file_bytes,
            "wall_seconds": self._limits.wall_seconds,
            "cpu_seconds": self._limits.cpu_seconds,
            "memory_bytes": self._limits.memory_bytes,
        }
        deadline = self._limits.wall_seconds + _START_SECONDS
        try:
            answer = await self._pool.ask(question, submission, deadline)
        except NoAnswerError as error:
            raise InfrastructureError(ErrorKind.GRADER_ERROR, _GRADER_ERROR) from error
        return _to_grade(answer)

    async def aclose(self) -> None:
        """Stop every process this grader started."""
        await self._pool.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _to_grade(answer: dict[str, Any]) -> Grade:
    match answer:
        case {"outcome": "score", "score": float(score)}:
            return Grade(score, None)
        case {"outcome": "invalid"}:
            return Grade(None, INVALID_SUBMISSION)
        case _:
            log.error("the grader failed: %s", answer.get("detail", "no detail"))
            raise InfrastructureError(ErrorKind.GRADER_ERROR, _GRADER_ERROR)


def grade_file(folder: Path, submission: Path, answers: Path) -> Grade:
    """Grade one file on disk; a missing file is a `no_submission`.

    Raises:
        InfrastructureError: `grader_error` when the fault is the grader's own.
    """
    return grade_all(folder, answers, [_read_submission(submission)])[0]


def grade_all(folder: Path, answers: Path, submissions: Iterable[bytes | None]) -> list[Grade]:
    """Grade several submissions of one task in one grading process.

    Raises:
        InfrastructureError: `grader_error` when the fault is the grader's own.
    """

    async def grade() -> list[Grade]:
        async with ProcessGrader() as grader:
            return [
                await grader.grade_bytes(data, folder, answers, _FILE_BYTES) for data in submissions
            ]

    return asyncio.run(grade())


def grade_cases(directory: Path, task_folders: Mapping[str, Path]) -> Iterator[GradedCase]:
    """Grade every case folder below a directory with the grader of its task.

    A case folder holds `answers.csv`, a submission, and usually an `expected.json` that names
    the task and the submission; otherwise the task is the name of the folder above. A case of
    an unknown task is neither valid nor invalid.
    """
    with asyncio.Runner() as runner:
        grader = ProcessGrader()
        try:
            for case in _case_folders(directory):
                about = _read_about(case / "expected.json")
                folder = task_folders.get(about.get("task", case.parent.name))
                path = case.relative_to(directory).as_posix()
                if folder is None:
                    yield GradedCase(path=path, valid=None, score=None)
                    continue
                submission = _read_submission(case / about.get("submission", "submission.csv"))
                answers = case / about.get("answers", "answers.csv")
                grading = grader.grade_bytes(submission, folder, answers, _FILE_BYTES)
                grade = runner.run(grading)
                yield GradedCase(path=path, valid=grade.failure is None, score=grade.score)
        finally:
            runner.run(grader.aclose())


def _case_folders(directory: Path) -> list[Path]:
    marks = [*directory.rglob("expected.json"), *directory.rglob("answers.csv")]
    return sorted({mark.parent for mark in marks})


def _read_about(expected: Path) -> dict[str, Any]:
    about: dict[str, Any] = {}
    if expected.is_file():
        about = json.loads(expected.read_text(encoding="utf-8"))
    return about


def _read_submission(path: Path) -> bytes | None:
    if not path.is_file() or path.suffix.lower() != ".csv":
        return None
    with path.open("rb") as file:
        return file.read(_FILE_BYTES + 1)
