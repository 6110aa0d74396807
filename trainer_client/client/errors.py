"""Why there is no reward, as exceptions.

    RewardServerError             there is no reward
    ├── SampleLostError           not for this sample: drop it and go on   <- the one to catch
    │   ├── InfrastructureError   the server failed, or cannot be reached
    │   ├── OverloadedError       the server had no room until the deadline
    │   ├── DeadlineExceededError the caller's deadline passed; the job may still be found
    │   ├── JobCancelledError     somebody cancelled the job
    │   └── TooLargeError         413: the model wrote too much (also a RequestRefusedError)
    └── RequestRefusedError       401, 404, 409, 422: our request is wrong; stop and mend it

A trainer catches `SampleLostError` and masks the sample. What is left is a mistake that every
further request would repeat: a wrong key, an unknown task. It is not caught, and ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known about a missing reward.

    `idempotency_key` is the one that was sent: whoever sends it again joins the same job.
    """

    status: int | None = None
    kind: str = "unknown"
    retryable: bool = False
    job_id: str | None = None
    idempotency_key: str | None = None
    retry_after_seconds: float = 0.0


class RewardServerError(Exception):
    """There is no reward for this submission."""

    def __init__(self, message: str, known: Circumstances | None = None) -> None:
        super().__init__(message, known)
        self.message = message
        self._known = known or Circumstances()

    def __str__(self) -> str:
        return self.message

    @property
    def status(self) -> int | None:
        """Return the HTTP status, if there was one."""
        return self._known.status

    @property
    def kind(self) -> str:
        """Return the server's name for what went wrong, or ours."""
        return self._known.kind

    @property
    def retryable(self) -> bool:
        """Tell whether the same request may do better later."""
        return self._known.retryable

    @property
    def job_id(self) -> str | None:
        """Return the job, if one is known to exist."""
        return self._known.job_id

    @property
    def idempotency_key(self) -> str | None:
        """Return the key that joins the job, if one was sent."""
        return self._known.idempotency_key

    @property
    def retry_after_seconds(self) -> float:
        """Return how long the server asked to wait before the next try."""
        return self._known.retry_after_seconds

    def about(self, *, job_id: str | None = None, key: str | None = None) -> Self:
        """Return this error as that of one job."""
        known = replace(
            self._known,
            job_id=job_id or self.job_id,
            idempotency_key=key or self.idempotency_key,
        )
        return type(self)(self.message, known)


class SampleLostError(RewardServerError):
    """This sample has no reward; others may well have one. Never put a number in its place."""


class InfrastructureError(SampleLostError):
    """The server failed, answered what cannot be used, or could not be reached."""


class OverloadedError(SampleLostError):
    """The queue was full until the deadline."""


class DeadlineExceededError(SampleLostError):
    """The caller's deadline passed first; `job_id`, where known, finds or cancels the job."""


class JobCancelledError(SampleLostError):
    """The job was cancelled before it had a result."""


class RequestRefusedError(RewardServerError):
    """The server will never take this request as it is."""


class TooLargeError(RequestRefusedError, SampleLostError):
    """What the model wrote is larger than the server takes; a shorter text would have passed."""
