"""Errors as RFC 9457 problem documents: the one format of every response without an answer."""

from __future__ import annotations

import http
from typing import TYPE_CHECKING, Any, assert_never

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from reward_server.errors import InfrastructureError, QueueFullError, RequestError
from reward_server.model import Blame, ErrorKind

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

RETRY_SECONDS = 5
MEDIA_TYPE = "application/problem+json"

_STATUS = {
    ErrorKind.UNAUTHORIZED: 401,
    ErrorKind.UNKNOWN_TASK: 404,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.INVALID_REQUEST: 422,
    ErrorKind.OVERLOADED: 429,
}


_MEANING = {
    401: "The API key is missing or wrong.",
    404: "The task, job, batch, solution or run does not exist.",
    409: "The idempotency key belongs to another request.",
    413: "The body is larger than the server accepts.",
    415: "The body is not JSON.",
    422: "The request is invalid; `detail` says where.",
    429: "The queue, or this client's share of it, is full. Retry after `Retry-After` seconds.",
    503: "The server failed or the job was cancelled; there is no reward.",
    504: "No slot was free in time, or the box was lost; the request may be repeated.",
}
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Problem(BaseModel):
    """Why there is no answer."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    kind: ErrorKind
    blame: Blame
    retryable: bool


_problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
SCHEMAS: dict[str, Any] = {**_problem.pop("$defs"), "Problem": _problem}
"""The models that `describe` refers to."""


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declare, for the OpenAPI document, the problems that a route can respond with."""
    return {status: {"description": _MEANING[status]} for status in statuses}


def describe() -> dict[str, Any]:
    """Return the shared responses of the OpenAPI document, by their status."""
    schema = {"$ref": "#/components/schemas/Problem"}
    content = {MEDIA_TYPE: {"schema": schema}}
    return {
        str(status): {"description": text, **_headers_of(status), "content": content}
        for status, text in _MEANING.items()
    }


def _headers_of(status: int) -> dict[str, Any]:
    if status == 401:
        return {"headers": {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}}}
    if status in (429, 503):
        text = "Seconds after which to repeat the same request with the same idempotency key."
        schema = {"type": "integer", "minimum": 0}
        return {
            "headers": {"Retry-After": {"description": text, "required": True, "schema": schema}}
        }
    return {}


class HttpError(Exception):
    """A request error with an explicit status, for errors of HTTP itself."""

    def __init__(
        self,
        status: int,
        message: str,
        kind: ErrorKind = ErrorKind.INVALID_REQUEST,
        *,
        closes: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.closes = closes


def respond(
    kind: ErrorKind,
    detail: str,
    status: int | None = None,
    *,
    closes: bool = False,
    retry_seconds: int = RETRY_SECONDS,
) -> JSONResponse:
    """Return the response for one error."""
    code = status or status_of(kind)
    problem = Problem(
        title=http.HTTPStatus(code).phrase,
        status=code,
        detail=detail,
        kind=kind,
        blame=kind.blame,
        retryable=is_retryable(kind),
    )
    headers = {"Retry-After": str(retry_seconds)} if code in (429, 503) else {}
    if closes:
        headers["Connection"] = "close"
    if code == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(
        problem.model_dump(mode="json"),
        status_code=code,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


def status_of(kind: ErrorKind) -> int:
    """Return the HTTP status of an error without an answer."""
    match kind.blame:
        case Blame.INFRA:
            return 503
        case Blame.REQUEST:
            return _STATUS[kind]
        case Blame.PROGRAM:
            message = f"{kind} is an answer, not a problem"
            raise ValueError(message)
        case never:
            assert_never(never)


def is_retryable(kind: ErrorKind) -> bool:
    """Return whether repeating the same request may succeed."""
    if kind is ErrorKind.CANCELLED:
        return False
    return kind.blame is Blame.INFRA or kind is ErrorKind.OVERLOADED


def add_handlers(app: FastAPI) -> None:
    """Register a problem document for every exception that can leave a route."""
    for known in (RequestError, InfrastructureError, HttpError):
        app.add_exception_handler(known, _on_known_error)
    app.add_exception_handler(HTTPException, _on_no_route)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(Exception, _on_bug)


async def _on_known_error(_: Request, error: Exception) -> JSONResponse:
    match error:
        case HttpError():
            return respond(error.kind, error.message, error.status, closes=error.closes)
        case QueueFullError():
            return respond(error.kind, error.message, retry_seconds=error.retry_seconds)
        case RequestError() | InfrastructureError():
            return respond(error.kind, error.message)
        case _:
            raise error


async def _on_no_route(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 404:
        return respond(ErrorKind.NOT_FOUND, "there is nothing at this path", 404)
    if error.status_code != 405:
        answer = respond(ErrorKind.INVALID_REQUEST, error.detail, error.status_code)
        answer.headers.update(error.headers or {})
        return answer
    allowed = ", ".join(_methods_at(request))
    message = f"this path takes {allowed} and not {request.method[:20]}"
    answer = respond(ErrorKind.INVALID_REQUEST, message, 405)
    answer.headers["Allow"] = allowed
    return answer


def _methods_at(request: Request) -> list[str]:
    """Return all methods of a path; Starlette names only those of the first route."""
    return [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.router.routes
        )
    ]


async def _on_invalid(_: Request, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    texts = (f"{'.'.join(map(str, e['loc']))[:80]}: {e['msg']}" for e in found[:5])
    return respond(ErrorKind.INVALID_REQUEST, "; ".join(texts))


async def _on_bug(_: Request, error: Exception) -> JSONResponse:
    del error  # Starlette logs it; its text must not reach a client
    return respond(ErrorKind.WORKER_LOST, "the server failed on this request")
