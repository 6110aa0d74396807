"""HTTP requests with retries until a deadline.

Every request is safe to repeat: reads, cancellations, and submissions with an idempotency key.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

from trainer_client.client.answers import bad_answer
from trainer_client.client.errors import (
    DeadlineExceededError,
    ErrorDetails,
    InfrastructureError,
    OverloadedError,
    RequestRefusedError,
    RewardServerError,
)
from trainer_client.client.outages import OutageTracker
from trainer_client.client.replies import ServerReply, read_reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_client.client.answers import JsonObject
    from trainer_client.client.options import Options

POLLS: Final = 3
_OTHERS: Final = 2
_CONNECT_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = (
    60.0  # half of the server's, so that we never reuse a connection it has just closed
)
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request, and how long the server may take to answer it."""

    method: str
    path: str
    body: Mapping[str, object] | None = None
    query: Mapping[str, str] | None = None
    answer_seconds: float = 60.0


class Transport:
    """A few connections to one server, shared by all calls of a client."""

    def __init__(self, url: str, api_key: str | None, options: Options) -> None:
        headers = {"Accept-Encoding": "identity"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        connections = options.connections + POLLS + _OTHERS
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=connections, keepalive_expiry=_KEEP_ALIVE_SECONDS),
            follow_redirects=False,
            trust_env=False,
            proxy=options.proxy,
            verify=url.startswith("https:") and options.verify,  # loading certificates is slow
        )
        self._outage = OutageTracker(options.outage_seconds)
        self._submitting = asyncio.Semaphore(options.connections)
        self._asking = asyncio.Semaphore(_OTHERS)
        self._full: OverloadedError | None = None
        self._full_until = 0.0

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def submit(self, body: Mapping[str, object], deadline: float) -> JsonObject:
        """Submit a job. If the server's queue is full, all submissions of this client wait.

        Raises:
            RewardServerError: as `ask`.
        """
        request = Request("POST", "/v1/jobs", body)
        try:
            async with asyncio.timeout_at(deadline), self._submitting:
                return await self._repeat(request, deadline, is_submission=True)
        except TimeoutError:
            if self._full is not None and self._full_until > _now():
                raise self._full.with_ids() from None
            raise _too_late() from None

    async def ask(self, request: Request, deadline: float) -> JsonObject:
        """Send a short request.

        Raises:
            RequestRefusedError: a retry would not help.
            InfrastructureError: no reply for too long.
            OverloadedError: the queue was full until the deadline.
            DeadlineExceededError: no reply until the deadline.
        """
        try:
            async with asyncio.timeout_at(deadline), self._asking:
                return await self._repeat(request, deadline)
        except TimeoutError:
            raise _too_late() from None

    async def poll(self, request: Request) -> JsonObject:
        """Send a long poll. The caller limits how many are open.

        Raises:
            RewardServerError: as `ask`, without a deadline.
        """
        return await self._repeat(request, float("inf"))

    async def ask_once(self, request: Request) -> JsonObject:
        """Send a request without retries.

        Raises:
            RewardServerError: the server is not reachable, or its reply is an error.
        """
        async with self._asking:
            return read_reply(await self._send(request))

    async def _repeat(
        self, request: Request, deadline: float, *, is_submission: bool = False
    ) -> JsonObject:
        for attempt in itertools.count():
            if is_submission:
                await self._wait_for_room(deadline)
            self._outage.raise_if_given_up(_now())
            try:
                return await self._try(request)
            except (InfrastructureError, OverloadedError) as error:
                pause = self._pause_seconds(error, attempt)
                if _now() + pause >= deadline:
                    raise _as_late(error) from error
                if isinstance(error, OverloadedError):
                    self._full, self._full_until = error, _now() + pause
            await asyncio.sleep(pause)
        raise AssertionError  # the loop has no last attempt

    async def _wait_for_room(self, deadline: float) -> None:
        if self._full is not None and self._full_until >= deadline:
            raise self._full.with_ids()
        await asyncio.sleep(max(0.0, self._full_until - _now()))

    async def _try(self, request: Request) -> JsonObject:
        try:
            content = read_reply(await self._send(request))
        except InfrastructureError as error:
            self._outage.note_failure(_now(), error)
            raise
        except RewardServerError:
            self._outage.note_reply(_now())
            raise
        self._outage.note_reply(_now())
        return content

    def _pause_seconds(self, error: RewardServerError, attempt: int) -> float:
        """Return the pause before the next attempt, with full jitter, or raise the error."""
        is_failure = isinstance(error, InfrastructureError)
        if is_failure and (not error.retryable or self._outage.is_too_long(_now())):
            raise error
        most = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(attempt, 10))
        return error.retry_after_seconds + random.uniform(0, most)  # noqa: S311 - no secret

    async def _send(self, request: Request) -> ServerReply:
        body = None if request.body is None else json.dumps(request.body).encode()
        try:
            async with (
                asyncio.timeout(request.answer_seconds),
                self._http.stream(
                    request.method,
                    request.path,
                    content=body,
                    params=request.query,
                    headers={} if body is None else {"Content-Type": "application/json"},
                ) as response,
            ):
                return ServerReply(response.status_code, response.headers, await _read(response))
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
            message = f"the request cannot be sent: {error}"
            raise RequestRefusedError(message, ErrorDetails(kind="invalid_request")) from error
        except TimeoutError:
            message = f"no answer in {request.answer_seconds:g} seconds"
            raise _unreachable(message) from None
        except httpx.TransportError as error:
            raise _unreachable(str(error) or type(error).__name__) from error


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _MOST_BYTES:
            message = f"the reply is larger than {_MOST_BYTES} bytes"
            raise bad_answer(message)
    return bytes(body)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _unreachable(reason: str) -> InfrastructureError:
    known = ErrorDetails(kind="unreachable", retryable=True)
    return InfrastructureError(f"the reward server does not answer: {reason}", known)


def _too_late() -> DeadlineExceededError:
    known = ErrorDetails(kind="deadline_exceeded", retryable=True)
    return DeadlineExceededError("the deadline has passed", known)


def _as_late(error: InfrastructureError | OverloadedError) -> RewardServerError:
    """Return the error for a next attempt that would come after the deadline."""
    if isinstance(error, OverloadedError):
        return error.with_ids()
    known = ErrorDetails(error.status, "deadline_exceeded", retryable=True)
    return DeadlineExceededError(f"the deadline came first; {error.message}", known)
