"""Taking a verdict from the store instead of running the same program on the same data again.

Only within one run, only what the program itself decided (no time-outs, nothing that others held
up), only from the same kind of box, and never from a verdict that was itself taken over. The
duration is the one that was measured.
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
    """Finds verdicts that can stand for another run of a program."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def recall(self, job: LeasedJob, task: Task, rooms: Stages) -> Verdict | None:
        """Return what a run of this program would find out, if that is known.

        Raises:
            InfrastructureError: `store_error`.
        """
        program = extract(job.submission)
        if program.failure is not None:
            return None
        known = await self._store.twin(
            program.digest, job.submission, task.data_digest, rooms.sandbox.box
        )
        limits = limits_for(task, job.submission, rooms.ceiling)
        if known is None or known.execution.duration_seconds >= limits.wall_seconds:
            return None
        execution, grade = known.execution, known.grade
        return Verdict(
            submission=job.submission,
            program=program,
            instrumentation=known.instrumentation,
            execution=execution,
            grade=grade,
            reward=rooms.scheme.reward(execution, grade, task.scale),
            timings=replace(_NO_TIME, queue=job.waited_seconds, execute=execution.duration_seconds),
            higher_is_better=known.higher_is_better,
            data_digest=known.data_digest,
            medal=task.medal(grade.score),
            reused_from=known.solution_id,
        )


_NO_TIME = Timings(queue=0, instrument=0, boot=0, execute=0, grade=0, total=0)
