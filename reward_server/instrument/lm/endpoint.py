"""The one door to the language model: any endpoint that speaks OpenAI's chat completions.

It may be slow, down, flooding, or serve another model. Nothing it does costs a program more
than the deadline, which holds for all attempts of one question together. After a few failures
in a row the door is shut: questions are turned away without waiting, while a watcher looks
every few seconds whether the right model answers there again. All that decides how the model
samples is fixed here.
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
_FAILURES_TO_SHUT = 5
_LOOK_SECONDS = 5.0
_MOST_BYTES = 4 << 20
_HIGHEST_PORT = 65_535
_UNREACHABLE = (httpx.HTTPError, UnicodeError)  # the latter for a name that cannot be looked up
_PROBE = {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1}


class EndpointState(StrEnum):
    """Whether questions go through: only when `ready`."""

    READY = "ready"
    DOWN = "down"
    WRONG_MODEL = "wrong_model"
    PROBING = "probing"


class LmEndpoint:
    """A pool of connections to one model, with a deadline, retries and a circuit breaker.

    Raises SetupError for a URL that is none.
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
        self._watcher: asyncio.Task[None] | None = None
        headers = {"Accept-Encoding": "identity"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        self._client = httpx.AsyncClient(
            base_url=_read_url(url),
            headers=headers,
            timeout=httpx.Timeout(None, connect=min(_LOOK_SECONDS, deadline_seconds)),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            trust_env=False,
        )

    async def start(self) -> None:
        """Look whether the model is there; one that is down may come later.

        Raises:
            SetupError: when the endpoint serves other models than the one asked for.
        """
        self._shut(await self._look())
        if self.state is EndpointState.WRONG_MODEL:
            served = ", ".join(self.served) or "no model"
            message = f"the language model's endpoint serves {served}, not {self.model}"
            raise SetupError(message)

    async def ask(self, question: LmRequest) -> LmReply:
        """Return what the model says, or why it says nothing, within the deadline."""
        if self.state is not EndpointState.READY:
            wrong = self.state is EndpointState.WRONG_MODEL
            return LmReply(trouble=LmTrouble.WRONG_MODEL if wrong else LmTrouble.DOWN)
        reply = await self._within_deadline(_body(question))
        self._note(reply)
        return reply

    @property
    def describes(self) -> str:
        """Return the state in words for `/readyz`."""
        if self.state is EndpointState.READY:
            return f"{self.state}, {self.model}"
        served = f" (it serves {', '.join(self.served)})" if self.served else ""
        return f"degraded: {self.state}{served}, the static instrumenter is used"

    async def aclose(self) -> None:
        """Stop watching and close every connection."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        await self._client.aclose()

    async def _within_deadline(self, body: dict[str, Any]) -> LmReply:
        try:
            async with asyncio.timeout(self._deadline_seconds) as deadline:
                return await self._attempts(body, deadline.when() or 0.0)
        except TimeoutError:
            return LmReply(trouble=LmTrouble.LATE)

    async def _attempts(self, body: dict[str, Any], ends_at: float) -> LmReply:
        clock = asyncio.get_running_loop().time
        for attempt in range(_ATTEMPTS):
            reply, asked_wait = await self._attempt(body)
            if asked_wait is None or self.state is not EndpointState.READY:
                break
            wait = asked_wait or _FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311
            if attempt == _ATTEMPTS - 1 or clock() + wait >= ends_at:
                break
            await asyncio.sleep(wait)
        return reply

    async def _attempt(self, body: dict[str, Any]) -> tuple[LmReply, float | None]:
        """Return a reply and, if it may be better next time, how long to wait (0: as we like)."""
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
        # A question that was too much for it says nothing about the next.
        trouble = LmTrouble.REFUSED if status in (400, 413, 422) else LmTrouble.FAILING
        return LmReply(trouble=trouble), None

    def _read(self, data: bytes | None) -> LmReply:
        return (
            LmReply(trouble=LmTrouble.OVERSIZED) if data is None else read_reply(data, self.model)
        )

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, httpx.Headers, bytes | None]:
        """Return status, headers and body; no body if it is longer than any we asked for."""
        content = None if body is None else {"model": self.model, **body}
        async with self._client.stream(method, path, json=content) as response:
            data = bytearray()
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > _MOST_BYTES:
                    return response.status_code, response.headers, None
            return response.status_code, response.headers, bytes(data)

    def _note(self, reply: LmReply) -> None:
        if reply.trouble is None or not reply.trouble.is_of_the_endpoint:
            self._failures = 0
            return
        self._failures += 1
        if self.state is not EndpointState.READY:
            return
        if reply.trouble is LmTrouble.WRONG_MODEL:
            self._shut(EndpointState.WRONG_MODEL)
        elif self._failures >= _FAILURES_TO_SHUT:
            self._shut(EndpointState.DOWN)

    def _shut(self, state: EndpointState) -> None:
        """Take up a state; whichever is not `ready` is looked at again after a pause."""
        if state is not self.state:
            log.warning("the language model at %s: %s", self._client.base_url, state)
        self.state, self._failures = state, 0
        is_watched = self._watcher is not None and not self._watcher.done()
        if state is not EndpointState.READY and not is_watched:
            self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while self.state is not EndpointState.READY:
            await asyncio.sleep(self._pause_seconds)
            before, self.state = self.state, EndpointState.PROBING
            found = await self._look()
            if found is EndpointState.READY and not await self._answers():
                found = EndpointState.DOWN
            if found is not before:
                log.warning("the language model at %s: %s", self._client.base_url, found)
            self.state, self._failures = found, 0

    async def _look(self) -> EndpointState:
        """Ask which models there are, and how much the right one can read."""
        self.served = ()
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
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

    async def _answers(self) -> bool:
        """Ask for one word, so that no program has to find out."""
        reply = await self._within_deadline({**_SAMPLING, **_PROBE})
        return reply.trouble is None or not reply.trouble.is_of_the_endpoint


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


def _body(question: LmRequest) -> dict[str, Any]:
    body = {**_SAMPLING, "messages": list(question.messages), "max_tokens": question.max_tokens}
    if question.schema is None:
        return body
    named = {"name": "places", "strict": True, "schema": question.schema}
    return {**body, "response_format": {"type": "json_schema", "json_schema": named}}


def _retry_after(headers: httpx.Headers) -> float:
    try:
        seconds = float(headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
