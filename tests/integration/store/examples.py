"""Values to put into the store."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from reward_server.model import (
    Box,
    ErrorKind,
    Execution,
    Failure,
    Grade,
    Instrumentation,
    Milestone,
    Program,
    Reward,
    Submission,
    Timings,
    Verdict,
)
from reward_server.store.values import LeaseRequest, NewJob

if TYPE_CHECKING:
    from uuid import UUID

    from reward_server.store.queries import Store

CLAIM = LeaseRequest(uuid4(), 60.0)
SUBMISSION = Submission(task_id="spaceship", code="print(1)", step=3, sample_id="s", wall_seconds=9)
TIMINGS = Timings(0.1, 0.2, 0.3, 0.4, 0.5, 1.5)
FAILURE = Failure(ErrorKind.NONZERO_EXIT, "the program ended with code 1")


def verdict(
    reward: float = 0.8,
    *,
    failure: Failure | None = None,
    duration_seconds: float = 1.5,
    program: Program = Program("print(1)", "a plan"),  # noqa: B008 - frozen
    stdout_tail: str = "out",
) -> Verdict:
    return Verdict(
        submission=SUBMISSION,
        program=program,
        instrumentation=Instrumentation("static", verified=True),
        execution=Execution(
            box=Box("bubblewrap", "base"),
            failure=failure,
            milestones=(Milestone.IMPORTED_PACKAGES, Milestone.LOADED_DATA),
            exit_code=0 if failure is None else 1,
            duration_seconds=duration_seconds,
            cpu_seconds=1.25,
            peak_memory_bytes=3 * 2**30,
            stdout_tail=stdout_tail,
            stderr_tail="err",
            pressure=0.25,
            contended=True,
        ),
        grade=Grade(score=0.8 if failure is None else None, failure=failure),
        reward=Reward(reward, "paper", 1),
        timings=TIMINGS,
        higher_is_better=True,
        data_digest="d1",
        medal="gold" if failure is None else None,
    )


async def add(store: Store, submission: Submission = SUBMISSION, **options: object) -> UUID:
    """Take one submission through the store and return its solution's id."""
    accepted = await store.accept(NewJob(submission, "digest"), CLAIM)
    stored = await store.record(accepted.job_id, accepted.attempt, verdict(**options))  # type: ignore[arg-type]
    return stored.solution_id
