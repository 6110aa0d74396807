"""What the store returns: frozen values that reuse the types of the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from reward_server.model import Priority, Verdict

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from reward_server.model import (
        Execution,
        Failure,
        Grade,
        Milestone,
        PromptKind,
        Submission,
    )


class JobState(StrEnum):
    """The state of a job; the last four are final, except that an `errored` job may run again."""

    QUEUED = "queued"
    RUNNING = "running"
    SCORED = "scored"
    FAILED = "failed"
    ERRORED = "errored"
    CANCELLED = "cancelled"

    @property
    def has_ended(self) -> bool:
        """Return whether a job in this state is finished: it runs again only on a new request."""
        return self not in (JobState.QUEUED, JobState.RUNNING)

    @property
    def has_answer(self) -> bool:
        """Return whether a job in this state has a solution with a reward."""
        return self in (JobState.SCORED, JobState.FAILED)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A durable job; with `is_new` the caller created this attempt of it."""

    job_id: UUID
    is_new: bool
    state: JobState
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job; `error` is set when it is `errored`."""

    state: JobState
    error: Failure | None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to accept: the API builds it, the job service sets its budget, the store writes it."""

    submission: Submission
    body_digest: str
    idempotency_key: str | None = None
    priority: Priority = Priority.TRAINING
    client: str = ""
    budget_seconds: float = 86_400.0


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A worker that leases jobs, and how long a lease lasts until it is renewed."""

    worker: UUID
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class LeasedJob:
    """A job that a worker has leased: the time it waited and the time it has left."""

    job_id: UUID
    attempt: int
    submission: Submission
    waited_seconds: float = 0.0
    left_seconds: float = 86_400.0


@dataclass(frozen=True, slots=True)
class BatchItem:
    """An item of a batch and the state of its job."""

    index: int
    job_id: UUID
    state: JobState
    error: Failure | None


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch: how many results complete it, and its items in the order in which they ended."""

    batch_id: UUID
    min_complete: int
    cancels_rest: bool
    items: tuple[BatchItem, ...]


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue of the whole database: its length by client and the age of its oldest job."""

    queued: int
    running: int
    oldest_seconds: float
    queued_of: dict[str, int]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with all that running it again takes; `error` is set when it is `errored`."""

    job_id: UUID
    idempotency_key: str | None
    body_digest: str
    submission: Submission
    state: JobState
    attempt: int
    faults: int
    error: Failure | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer(Verdict):
    """A verdict as the store keeps it: `POST /score` publishes its fields.

    The submission is without its source and its own time limit; only the program is kept.
    """

    job_id: UUID
    solution_id: UUID
    attempt: int
    created_at: datetime
    program_digest: str

    @property
    def failure(self) -> Failure | None:
        """Return why the solution has no score, if it has none."""
        return self.grade.failure

    @property
    def status(self) -> JobState:
        """Return the state of the job that ended with this answer."""
        return JobState.SCORED if self.failure is None else JobState.FAILED


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A solution as a line of a list: without its texts."""

    solution_id: UUID
    job_id: UUID
    task_id: str
    run_id: str
    step: int | None
    sample_id: str | None
    parent_id: UUID | None
    prompt_kind: PromptKind
    status: JobState
    reward: float
    score: float | None
    higher_is_better: bool
    valid: bool
    error_kind: str | None
    milestones: tuple[Milestone, ...]
    duration_seconds: float
    cpu_seconds: float
    data_digest: str
    scheme: str
    scheme_version: int
    medal: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OutcomeFilter:
    """Selects outcomes by task and by run; None selects all."""

    task_id: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """What computing another reward takes; `reward` is the one in the answer."""

    solution_id: UUID
    created_at: datetime
    task_id: str
    reward: float
    higher_is_better: bool
    data_digest: str
    execution: Execution
    grade: Grade


@dataclass(frozen=True, slots=True)
class KeptReward:
    """The reward of a solution under another scheme than the one in its answer."""

    scheme: str
    value: float
    scheme_version: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Relative:
    """An ancestor or a child of a solution."""

    solution_id: UUID
    reward: float


@dataclass(frozen=True, slots=True)
class SolutionDetail:
    """A solution with its ancestors, nearest first, and its children, best first.

    `rewards` has the newest version of every scheme by which it was rescored.
    """

    answer: StoredAnswer
    ancestors: tuple[Relative, ...]
    children: tuple[Relative, ...]
    rewards: tuple[KeptReward, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list; `next_cursor` is None on the last one."""

    solutions: tuple[StoredSummary, ...]
    next_cursor: str | None
