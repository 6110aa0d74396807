"""Submissions and the jobs they become."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, Self, TypedDict

from trainer_client.client.errors import ErrorDetails, RequestRefusedError

if TYPE_CHECKING:
    from trainer_client.client.answers import JsonObject

PromptKind = Literal["scratch", "improve"]
Priority = Literal["training", "evaluation"]


class Fields(TypedDict, total=False):
    """The optional fields of a submission; `completion` or `code` is required."""

    completion: str | None
    code: str | None
    run_id: str | None
    step: int | None
    sample_id: str | None
    parent_id: str | None
    prompt_kind: PromptKind | None
    wall_seconds: float | None
    priority: Priority | None
    idempotency_key: str | None


@dataclass(frozen=True, slots=True)
class Submission:
    """What a model wrote for a task: exactly one of `completion` and `code`.

    Without an `idempotency_key` every request creates a new job.
    """

    task_id: str
    completion: str | None = None
    code: str | None = None
    run_id: str | None = None
    step: int | None = None
    sample_id: str | None = None
    parent_id: str | None = None
    prompt_kind: PromptKind | None = None
    wall_seconds: float | None = None
    priority: Priority | None = None
    idempotency_key: str | None = None

    def with_key(self) -> Self:
        """Return this with a key, so that retries join one job."""
        return self if self.idempotency_key else replace(self, idempotency_key=uuid.uuid4().hex)

    def body(self) -> JsonObject:
        """Return the request body."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Job:
    """A submission that the server has accepted and stored."""

    job_id: str
    submission: Submission | None = None


def job_of(job: Job | str) -> Job:
    """Return a job by itself or by its id.

    Raises:
        RequestRefusedError: it is no valid id. In a poll it would make the server reject all ids.
    """
    found = job if isinstance(job, Job) else Job(job)
    try:
        return replace(found, job_id=str(uuid.UUID(found.job_id)))
    except ValueError:
        message = f"{found.job_id!r} is not the id of a job"
        known = ErrorDetails(kind="not_found", job_id=found.job_id)
        raise RequestRefusedError(message, known) from None
