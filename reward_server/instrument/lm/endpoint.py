"""The client of the language model: any endpoint that speaks OpenAI's chat completions.

The endpoint may be slow, down, flood the connection or serve another model. No program waits
longer than the deadline, which covers all attempts of one request together. After a few failures
in a row the circuit breaker opens: requests fail at once, while a background task probes every
few seconds whether the right model answers again. Every sampling parameter is fixed here.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import httpx

from reward_server.errors import SetupError
from reward_server.instrument.lm.reply import LmReply, LmTrouble, read_models, read_reply

if TYPE_CHECKING:
    from reward_server.instrument.lm.prompts import LmRequest

log = logging.getLogger(__name__)

_ATTEMPTS = 3
_FIRST_WAIT_SECONDS = 0.25
_FAILURES_TO_OPEN = 5
_PROBE_SECONDS = 5.0
_MOST_BYTES = 4 << 20
_HIGHEST_PORT = 65_535
_UNREACHABLE = (httpx.HTTPError, UnicodeError)  # the latter for a host name that cannot be encoded
_PROBE = {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1}


class EndpointState(StrEnum):
    """Whether requests go through: only when `ready`."""

    READY = "ready"
    DOWN = "down"
    WRONG_MODEL = "wrong_model"
    PROBING = "probing"


class LmEndpoint:
    """A pool of connections to one model, with a deadline, retries and a circuit breaker.

    Raises SetupError for an invalid URL.
    """

    def __init__(  # noqa: PLR0913 - one per setting
        self,
        url: str,
        model: str,
        *,
        deadline_seconds: float = 30.0,
        context_tokens: int = 8192,
        api_key: str | None = None,
        connections: int = 256,
        pause_seconds: float = 5.0,
    ) -> None:
        self.model = model
        self.context_tokens = context_tokens
        self.state = EndpointState.READY
        self.served: tuple[str, ...] = ()
        self._deadline_seconds = deadline_seconds
        self._pause_seconds = pause_seconds
        self._failures = 0
        self._probe_task: asyncio.Task[None] | None = None
        headers = {"Accept-Encoding": "identity"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        self._client = httpx.AsyncClient(
            base_url=_read_url(url),
            headers=headers,
            timeout=httpx.Timeout(None, connect=min(_PROBE_SECONDS, deadline_seconds)),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            trust_env=False,
        )

    async def start(self) -> None:
        """Check that the model is served; one that is down may come up later.

        Raises:
            SetupError: when the endpoint serves other models than the configured one.
        """
        self._set_state(await self._probe_models())
        if self.state is EndpointState.WRONG_MODEL:
            served = ", ".join(self.served) or "no model"
            message = f"the language model's endpoint serves {served}, not {self.model}"
            raise SetupError(message)

    async def ask(self, request: LmRequest) -> LmReply:
        """Return the model's reply, or why there is none, within the deadline."""
        if self.state is not EndpointState.READY:
            wrong = self.state is EndpointState.WRONG_MODEL
            return LmReply(trouble=LmTrouble.WRONG_MODEL if wrong else LmTrouble.DOWN)
        reply = await self._complete(_body(request))
        self._count_failure(reply)
        return reply

    @property
    def describes(self) -> str:
        """Return the state in words for `/readyz`."""
        if self.state is EndpointState.READY:
            return f"{self.state}, {self.model}"
        served = f" (it serves {', '.join(self.served)})" if self.served else ""
        return f"degraded: {self.state}{served}, the static instrumenter is used"

    async def aclose(self) -> None:
        """Stop probing and close every connection."""
        if self._probe_task is not None:
            self._probe_task.cancel()
            await asyncio.gather(self._probe_task, return_exceptions=True)
        await self._client.aclose()

    async def _complete(self, body: dict[str, Any]) -> LmReply:
        try:
            async with asyncio.timeout(self._deadline_seconds) as deadline:
                return await self._attempts(body, deadline.when() or 0.0)
        except TimeoutError:
            return LmReply(trouble=LmTrouble.LATE)

    async def _attempts(self, body: dict[str, Any], ends_at: float) -> LmReply:
        clock = asyncio.get_running_loop().time
        for attempt in range(_ATTEMPTS):
            reply, server_wait = await self._attempt(body)
            if server_wait is None or self.state is not EndpointState.READY:
                break
            wait = server_wait or _FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311
            # A retry that starts after the deadline only makes the program wait longer.
            if attempt == _ATTEMPTS - 1 or clock() + wait >= ends_at:
                break
            await asyncio.sleep(wait)
        return reply

    async def _attempt(self, body: dict[str, Any]) -> tuple[LmReply, float | None]:
        """Return a reply and, if a retry makes sense, the seconds to wait (0: use the backoff)."""
        try:
            status, headers, data = await self._send("POST", "chat/completions", body)
        except _UNREACHABLE as error:
            log.info("the language model cannot be reached: %r", error)
            return LmReply(trouble=LmTrouble.DOWN), 0.0
        if status == 200:
            return self._read(data), None
        log.info("the language model answered with status %d", status)
        if status == 429 or status >= 500:
            trouble = LmTrouble.BUSY if status == 429 else LmTrouble.FAILING
            return LmReply(trouble=trouble), _retry_after(headers)
        # A request that is too large says nothing about the next one.
        trouble = LmTrouble.REFUSED if status in (400, 413, 422) else LmTrouble.FAILING
        return LmReply(trouble=trouble), None

    def _read(self, data: bytes | None) -> LmReply:
        return (
            LmReply(trouble=LmTrouble.OVERSIZED) if data is None else read_reply(data, self.model)
        )

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, httpx.Headers, bytes | None]:
        """Return status, headers and body; no body if it exceeds the limit."""
        content = None if body is None else {"model": self.model, **body}
        async with self._client.stream(method, path, json=content) as response:
            data = bytearray()
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > _MOST_BYTES:
                    return response.status_code, response.headers, None
            return response.status_code, response.headers, bytes(data)

    def _count_failure(self, reply: LmReply) -> None:
        if reply.trouble is None or not reply.trouble.counts_against_endpoint:
            self._failures = 0
            return
        self._failures += 1
        # Replies in flight when the circuit opens arrive later; they must not change its state.
        if self.state is not EndpointState.READY:
            return
        if reply.trouble is LmTrouble.WRONG_MODEL:
            self._set_state(EndpointState.WRONG_MODEL)
        elif self._failures >= _FAILURES_TO_OPEN:
            self._set_state(EndpointState.DOWN)

    def _set_state(self, state: EndpointState) -> None:
        """Enter a state; while it is not `ready`, a background task probes the endpoint."""
        if state is not self.state:
            log.warning("the language model at %s: %s", self._client.base_url, state)
        self.state, self._failures = state, 0
        is_probing = self._probe_task is not None and not self._probe_task.done()
        if state is not EndpointState.READY and not is_probing:
            self._probe_task = asyncio.create_task(self._probe_until_ready())

    async def _probe_until_ready(self) -> None:
        while self.state is not EndpointState.READY:
            await asyncio.sleep(self._pause_seconds)
            before, self.state = self.state, EndpointState.PROBING
            found = await self._probe_models()
            if found is EndpointState.READY and not await self._probe_completion():
                found = EndpointState.DOWN
            if found is not before:
                log.warning("the language model at %s: %s", self._client.base_url, found)
            self.state, self._failures = found, 0

    async def _probe_models(self) -> EndpointState:
        """List the served models, and read the context length of the configured one."""
        self.served = ()
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                status, _, data = await self._send("GET", "models")
        except (*_UNREACHABLE, TimeoutError):
            return EndpointState.DOWN
        models = read_models(data) if status == 200 and data is not None else None
        if models is None:
            return EndpointState.DOWN
        self.served = tuple(name[:100] for name in models)[:8]
        if self.model not in models:
            return EndpointState.WRONG_MODEL
        self.context_tokens = min(self.context_tokens, models[self.model] or self.context_tokens)
        return EndpointState.READY

    async def _probe_completion(self) -> bool:
        """Request one token, so that no program has to find out."""
        reply = await self._complete({**_SAMPLING, **_PROBE})
        return reply.trouble is None or not reply.trouble.counts_against_endpoint


_SAMPLING: dict[str, Any] = {"temperature": 0, "n": 1, "seed": 0, "stream": False}


def _read_url(url: str) -> httpx.URL:
    try:
        read = httpx.URL(url.rstrip("/") + "/")
    except httpx.InvalidURL as error:
        message = f"the language model's URL cannot be read: {error}"
        raise SetupError(message) from None
    if (read.port or 0) > _HIGHEST_PORT:
        message = f"the language model's URL has no valid port: {url}"
        raise SetupError(message)
    return read


def _body(request: LmRequest) -> dict[str, Any]:
    body = {**_SAMPLING, "messages": list(request.messages), "max_tokens": request.max_tokens}
    if request.schema is None:
        return body
    named = {"name": "places", "strict": True, "schema": request.schema}
    return {**body, "response_format": {"type": "json_schema", "json_schema": named}}


def _retry_after(headers: httpx.Headers) -> float:
    try:
        seconds = float(headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
