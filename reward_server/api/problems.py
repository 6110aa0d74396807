"""Errors as RFC 9457 problem documents: one shape for everything that is not an answer."""

from __future__ import annotations

import http
from typing import TYPE_CHECKING, assert_never

from fastapi.responses import JSONResponse
from pydantic import BaseModel

from reward_server.errors import InfrastructureError, OverloadedError, RequestError
from reward_server.model import Blame, ErrorKind

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

RETRY_SECONDS = 5

_STATUS = {
    ErrorKind.UNAUTHORIZED: 401,
    ErrorKind.UNKNOWN_TASK: 404,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.INVALID_REQUEST: 422,
    ErrorKind.OVERLOADED: 429,
}


class Problem(BaseModel):
    """Why there is no answer."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    kind: ErrorKind
    blame: Blame
    retryable: bool


class HttpError(Exception):
    """A request error with a status of its own, for what only HTTP can get wrong."""

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
    """Return the problem document of one error."""
    code = status or _status(kind)
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
        media_type="application/problem+json",
    )


def _status(kind: ErrorKind) -> int:
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
    """Tell whether the same request may do better later."""
    if kind is ErrorKind.CANCELLED:
        return False
    return kind.blame is Blame.INFRA or kind is ErrorKind.OVERLOADED


def add_handlers(app: FastAPI) -> None:
    """Give every exception that can leave a route its problem document."""

    async def on_kinded(_: Request, error: Exception) -> JSONResponse:
        if not isinstance(error, RequestError | InfrastructureError):
            raise error
        seconds = error.retry_seconds if isinstance(error, OverloadedError) else RETRY_SECONDS
        return respond(error.kind, error.message, retry_seconds=seconds)

    async def on_http(_: Request, error: Exception) -> JSONResponse:
        if not isinstance(error, HttpError):
            raise error
        return respond(error.kind, error.message, error.status, closes=error.closes)

    app.add_exception_handler(RequestError, on_kinded)
    app.add_exception_handler(InfrastructureError, on_kinded)
    app.add_exception_handler(HttpError, on_http)
