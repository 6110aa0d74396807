"""Exceptions that say why there is no reward.

    RewardServerError             no reward
    ├── SampleLostError           for this sample: drop it and continue   <- catch this one
    │   ├── InfrastructureError   the server failed, or cannot be reached
    │   ├── OverloadedError       the queue was full until the deadline
    │   ├── DeadlineExceededError the caller's deadline passed; the job may still end
    │   ├── JobCancelledError     somebody cancelled the job
    │   └── TooLargeError         413: the model wrote too much (also a RequestRefusedError)
    └── RequestRefusedError       401, 404, 409, 422: the request is wrong; fix it

A trainer catches `SampleLostError` and masks the sample. The other errors are mistakes that every
further request would repeat, such as a wrong key or an unknown task. They should end the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """Details of a missing reward, which every error has as attributes.

    `status` is the HTTP status, if there was one, and `kind` the server's or the client's name for
    the problem. If `retryable`, the same request may succeed later. `job_id` is set if the job is
    known to exist. `idempotency_key` is the key of the request. A request with the same key joins
    the same job. `retry_after_seconds` is how long the server asked to wait before the next try.
    """

    status: int | None = None
    kind: str = "unknown"
    retryable: bool = False
    job_id: str | None = None
    idempotency_key: str | None = None
    retry_after_seconds: float = 0.0


class RewardServerError(Exception):
    """There is no reward for this submission."""

    def __init__(self, message: str, known: ErrorDetails | None = None) -> None:
        super().__init__(message, known)
        self.message = message
        self._known = known or ErrorDetails()
        self.status = self._known.status
        self.kind = self._known.kind
        self.retryable = self._known.retryable
        self.job_id = self._known.job_id
        self.idempotency_key = self._known.idempotency_key
        self.retry_after_seconds = self._known.retry_after_seconds

    def __str__(self) -> str:
        return self.message

    def with_ids(self, *, job_id: str | None = None, key: str | None = None) -> Self:
        """Return this error with the ids of a job."""
        known = replace(
            self._known,
            job_id=job_id or self.job_id,
            idempotency_key=key or self.idempotency_key,
        )
        return type(self)(self.message, known)


class SampleLostError(RewardServerError):
    """This sample has no reward; others may have one. Never replace the reward by a number."""


class InfrastructureError(SampleLostError):
    """The server failed, sent an unusable response, or could not be reached."""


class OverloadedError(SampleLostError):
    """The queue was full until the deadline."""


class DeadlineExceededError(SampleLostError):
    """The caller's deadline passed first; `job_id`, where known, finds or cancels the job."""


class JobCancelledError(SampleLostError):
    """The job was cancelled before it had a result."""


class RequestRefusedError(RewardServerError):
    """The server will never accept this request as it is."""


class TooLargeError(RequestRefusedError, SampleLostError):
    """The completion is larger than the server accepts. A shorter one would pass."""
