"""Reusing a stored verdict instead of running the same program on the same data again.

A verdict is reused within one run and the same kind of sandbox, if the program alone decided it:
not after a timeout, nor when other programs slowed it down. A reused verdict is never the source of
another. It keeps the duration that was measured.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reward_server.extract.completion import extract
from reward_server.model import Timings, Verdict
from reward_server.pipeline import limits_for

if TYPE_CHECKING:
    from reward_server.pipeline import Stages
    from reward_server.store.queries import Store
    from reward_server.store.values import LeasedJob
    from reward_server.tasks.base import Task


class ResultCache:
    """Finds stored verdicts that hold for another run of the same program."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, job: LeasedJob, task: Task, stages: Stages) -> Verdict | None:
        """Return the verdict on an identical program, if one is stored.

        Raises:
            InfrastructureError: `store_error`.
        """
        program = extract(job.submission)
        if program.failure is not None:
            return None
        known = await self._store.find_identical(
            program.digest, job.submission, task.data_digest, stages.sandbox.box
        )
        limits = limits_for(task, job.submission, stages.ceiling)
        if known is None or known.execution.duration_seconds >= limits.wall_seconds:
            return None
        execution, grade = known.execution, known.grade
        return Verdict(
            submission=job.submission,
            program=program,
            instrumentation=known.instrumentation,
            execution=execution,
            grade=grade,
            reward=stages.scheme.reward(execution, grade, task.scale),
            timings=replace(_NO_TIME, queue=job.waited_seconds, execute=execution.duration_seconds),
            higher_is_better=known.higher_is_better,
            data_digest=known.data_digest,
            medal=task.medal(grade.score),
            reused_from=known.solution_id,
        )


_NO_TIME = Timings(queue=0, instrument=0, boot=0, execute=0, grade=0, total=0)
