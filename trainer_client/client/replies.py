"""Parses HTTP responses: a JSON object, or the exception that says why there is none."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx

from trainer_client.client.answers import BAD_ANSWER
from trainer_client.client.errors import (
    ErrorDetails,
    InfrastructureError,
    JobCancelledError,
    OverloadedError,
    RequestRefusedError,
    RewardServerError,
    TooLargeError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_client.client.answers import JsonObject

CANCELLED = "cancelled"
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ServerReply:
    """A raw response, of the reward server or of a proxy in between."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_reply(reply: ServerReply) -> JsonObject:
    """Return the JSON object of a successful response.

    Raises:
        RewardServerError: any other response. The message says if no reward server sent it.
    """
    content = _parse(reply.body)
    if 200 <= reply.status < 300:
        if content is None:
            raise _foreign_error(reply)
        return content
    if content is None or not isinstance(content.get("kind"), str):
        raise _foreign_error(reply)
    raise _kinded(content, _known(reply, content["kind"], content.get("retryable") is True))


def job_error(problem: Mapping[str, Any], job_id: str) -> RewardServerError:
    """Return the exception for a job that ended without an answer."""
    retryable = problem.get("retryable") is True
    return _kinded(problem, ErrorDetails(None, str(problem.get("kind")), retryable, job_id))


def _kinded(problem: Mapping[str, Any], known: ErrorDetails) -> RewardServerError:
    message = str(problem.get("detail") or problem.get("message") or known.kind)
    if known.kind == CANCELLED:
        return JobCancelledError(message, known)
    if problem.get("blame") == "infra" or (known.status or 0) >= 500:
        return InfrastructureError(message, known)
    return _refusal(known.status)(message, known)


def _known(reply: ServerReply, kind: str, retryable: bool) -> ErrorDetails:  # noqa: FBT001
    seconds = retry_after_seconds(reply.headers.get("retry-after", "").strip())
    return ErrorDetails(reply.status, kind, retryable, retry_after_seconds=seconds)


def retry_after_seconds(text: str) -> float:
    """Parse `Retry-After`, as seconds or as a date."""
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def _refusal(status: int | None) -> type[RewardServerError]:
    match status:
        case 429:
            return OverloadedError
        case 413:
            return TooLargeError
        case _:
            return RequestRefusedError


def _foreign_error(reply: ServerReply) -> RewardServerError:
    """Return the error for a response of a proxy or another server."""
    message = _foreign(reply)
    if reply.status < 300 or reply.status >= 500 or reply.status == HTTPStatus.REQUEST_TIMEOUT:
        return InfrastructureError(message, _known(reply, BAD_ANSWER, retryable=True))
    retryable = reply.status == HTTPStatus.TOO_MANY_REQUESTS
    return _refusal(reply.status)(message, _known(reply, "unknown", retryable))


def _foreign(reply: ServerReply) -> str:
    text = reply.body[:_SHOWN_CHARACTERS].decode(errors="replace").strip()
    where = f" (to {reply.headers['location']})" if "location" in reply.headers else ""
    phrase = f"{reply.status} {httpx.codes.get_reason_phrase(reply.status)}".strip()
    return f"not the answer of a reward server: {phrase}{where}: {text!r}"


def _parse(body: bytes) -> JsonObject | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
