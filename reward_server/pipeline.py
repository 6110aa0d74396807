"""The pipeline: completion ─▶ extract ─▶ instrument ─▶ execute ─▶ grade ─▶ reward ─▶ store.

Each stage is a function from one frozen value to the next. A program's failure is a value that
passes through all stages. A fault of this server raises an exception, and there is no reward.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from reward_server.errors import boundary
from reward_server.extract.completion import extract
from reward_server.model import ErrorKind, Limits, Timings, Verdict

if TYPE_CHECKING:
    from uuid import UUID

    from reward_server.grade.base import Grader
    from reward_server.instrument.base import Instrumenter
    from reward_server.model import Program, Submission
    from reward_server.reward.base import Scheme
    from reward_server.sandbox.base import Sandbox
    from reward_server.store.values import LeasedJob, StoredAnswer
    from reward_server.tasks.base import Task


_LONG_TEXT = 1 << 16


class Recorder(Protocol):
    """Stores verdicts, exactly one per job."""

    async def record(self, job_id: UUID, attempt: int, verdict: Verdict) -> StoredAnswer:
        """Store a verdict and return it as it stands in the store."""
        ...


@dataclass(frozen=True, slots=True)
class Stages:
    """The implementations of the stages, as `bootstrap` chose them."""

    instrumenter: Instrumenter
    sandbox: Sandbox
    grader: Grader
    scheme: Scheme
    recorder: Recorder
    ceiling: Limits


async def run_pipeline(job: LeasedJob, task: Task, stages: Stages) -> StoredAnswer:
    """Take one submission from its text to its stored verdict.

    Raises:
        InfrastructureError: when a part of this server failed; nothing is stored.
    """
    stopwatch, submission = _Stopwatch(), job.submission
    with boundary(ErrorKind.WORKER_LOST, "pipeline"):
        program = await _extract(submission)
        instrumented = await stages.instrumenter.instrument(program)
        instrument_seconds = stopwatch.lap()
        execution = await stages.sandbox.execute(
            instrumented, task.card.id, task.public, limits_for(task, submission, stages.ceiling)
        )
        stopwatch.lap()
        grade = await stages.grader.grade(execution, task)
        grade_seconds = stopwatch.lap()
        reward = stages.scheme.reward(execution, grade, task.scale)
        verdict = Verdict(
            submission=submission,
            program=program,
            instrumentation=instrumented.instrumentation,
            execution=execution,
            grade=grade,
            reward=reward,
            timings=Timings(
                queue=job.waited_seconds + execution.queue_seconds,
                instrument=instrument_seconds,
                boot=execution.boot_seconds,
                execute=execution.duration_seconds,
                grade=grade_seconds,
                total=job.waited_seconds + stopwatch.total(),
            ),
            higher_is_better=task.card.higher_is_better,
            data_digest=task.data_digest,
            medal=task.medal(grade.score),
        )
        return await stages.recorder.record(job.job_id, job.attempt, verdict)


async def _extract(submission: Submission) -> Program:
    """Extract the program, in a thread if the text is long enough to block other requests."""
    if len(submission.completion or "") < _LONG_TEXT:
        return extract(submission)
    return await asyncio.to_thread(extract, submission)


def limits_for(task: Task, submission: Submission, ceiling: Limits) -> Limits:
    """Return what this program may use: never more than its task's card or the settings allow."""
    card = task.card
    wanted = submission.wall_seconds or card.wall_seconds
    return Limits(
        wall_seconds=min(wanted, card.wall_seconds, ceiling.wall_seconds),
        memory_bytes=min(card.memory_bytes, ceiling.memory_bytes),
        disk_bytes=min(card.disk_bytes, ceiling.disk_bytes),
        processes=ceiling.processes,
        open_files=ceiling.open_files,
        output_bytes=ceiling.output_bytes,
        artifact_bytes=min(card.artifact_bytes, ceiling.artifact_bytes),
        cores=min(card.cores, ceiling.cores),
        stall_seconds=card.stall_seconds,
    )


class _Stopwatch:
    def __init__(self) -> None:
        self._begun = self._lap = time.monotonic()

    def lap(self) -> float:
        before, self._lap = self._lap, time.monotonic()
        return self._lap - before

    def total(self) -> float:
        return time.monotonic() - self._begun
