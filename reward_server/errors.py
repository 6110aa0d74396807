"""Errors that are not a program's, as exceptions.

    ServiceError
    ├── RequestError         the caller's fault: a 4xx answer, nothing ran
    │   └── QueueFullError   a 429 that says when to retry
    ├── InfrastructureError  this server's fault: a 503 answer, never a reward
    └── SetupError           the server cannot start; the text names the remedy

A program's failure is a value (`model.Failure`) and never one of these. `model.ErrorKind.blame`
decides whose fault an error is; an exception with a kind of another's fault cannot be made.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reward_server.model import Blame, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)


class ServiceError(Exception):
    """Base of every exception this package raises on purpose."""


class SetupError(ServiceError):
    """The server cannot start; the text says what is missing and what to do."""


class _KindedError(ServiceError):
    blame: Blame

    def __init__(self, kind: ErrorKind, message: str) -> None:
        if kind.blame is not self.blame:
            text = f"{kind} is not a kind of {self.blame} error"
            raise ValueError(text)
        super().__init__(message)
        self.kind = kind
        self.message = message


class RequestError(_KindedError):
    """The request cannot be served as it is."""

    blame = Blame.REQUEST


class QueueFullError(RequestError):
    """The queue has no room for the request; `retry_seconds` says when it will."""

    def __init__(self, message: str, retry_seconds: int) -> None:
        super().__init__(ErrorKind.OVERLOADED, message)
        self.retry_seconds = retry_seconds


class InfrastructureError(_KindedError):
    """A part of this server failed; the submission has no reward."""

    blame = Blame.INFRA


@contextmanager
def boundary(kind: ErrorKind, stage: str) -> Iterator[None]:
    """Turn any unexpected exception of a stage into an infrastructure error that names it.

    Raises:
        InfrastructureError: with `kind`, for every exception that is not a ServiceError.
    """
    try:
        yield
    except ServiceError:
        raise
    except Exception as error:
        log.exception("%s failed", stage)
        message = f"the {stage} stage failed"
        raise InfrastructureError(kind, message) from error
