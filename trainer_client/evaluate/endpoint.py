"""Generates samples with a model behind an endpoint for OpenAI's chat completions.

One request is one sample. Errors that may pass are retried with growing random pauses, until the
sample's deadline. Then the sample is lost and does not count.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import httpx

from trainer_client.client.replies import retry_after_seconds
from trainer_client.evaluate.plan import EvaluationError
from trainer_client.evaluate.samples import GeneratedSample

if TYPE_CHECKING:
    from collections.abc import Sequence

_ATTEMPTS: Final = 8
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_MOST_BYTES = 16 << 20
_SHOWN_CHARACTERS = 200
_HOPELESS = (401, 403, 404, 405)


class NotGeneratedError(Exception):
    """The endpoint gave no completion for this sample."""


class EndpointRefusedError(EvaluationError):
    """The endpoint would refuse every other sample, too."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The sampling parameters."""

    model: str
    temperature: float
    top_p: float
    max_tokens: int


class _RetryError(Exception):
    """The same request may succeed later, after a number of seconds at least."""

    def __init__(self, reason: str, seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.seconds = seconds


class ModelEndpoint:
    """One model at one URL. Too many lost samples in a row end the evaluation."""

    def __init__(
        self,
        url: str,
        sampling: Sampling,
        api_key: str | None,
        *,
        deadline_seconds: float,
        concurrency: int,
    ) -> None:
        self._sampling = sampling
        self._api_key = api_key
        self._deadline_seconds = deadline_seconds
        self._most_lost = max(16, 2 * concurrency)
        self._lost_in_a_row = 0
        headers = {"Accept-Encoding": "identity"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/") + "/",
            headers=headers,
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=concurrency),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def generate(self, messages: Sequence[object], seed: int) -> GeneratedSample:
        """Generate one sample.

        Raises:
            NotGeneratedError: this sample is lost.
            EndpointRefusedError: all others would be lost, too.
        """
        body = self._body(messages, seed)
        try:
            async with asyncio.timeout(self._deadline_seconds) as deadline:
                generated = await self._repeat(body, deadline.when() or math.inf)
        except TimeoutError:
            message = f"no completion in {self._deadline_seconds:g} seconds"
            raise self._lost(message) from None
        except _RetryError as last:
            raise self._lost(str(last)) from None
        self._lost_in_a_row = 0
        return generated

    def _lost(self, reason: str) -> Exception:
        self._lost_in_a_row += 1
        if self._lost_in_a_row < self._most_lost:
            return NotGeneratedError(reason)
        message = f"the endpoint lost {self._lost_in_a_row} samples in a row, the last: {reason}"
        return EndpointRefusedError(message)

    def _body(self, messages: Sequence[object], seed: int) -> bytes:
        parameters = {
            **asdict(self._sampling),
            "messages": list(messages),
            "seed": seed,
            "n": 1,
            "stream": False,
        }
        return json.dumps(parameters).encode()

    async def _repeat(self, body: bytes, deadline: float) -> GeneratedSample:
        clock = asyncio.get_running_loop().time
        for attempt in range(_ATTEMPTS - 1):
            try:
                return await self._ask(body)
            except _RetryError as error:
                most = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**attempt)
                pause = error.seconds + random.uniform(0, most)  # noqa: S311 - no secret
                if clock() + pause >= deadline:
                    raise
            await asyncio.sleep(pause)
        return await self._ask(body)

    async def _ask(self, body: bytes) -> GeneratedSample:
        try:
            status, headers, content = await self._send(body)
        except httpx.TransportError as error:
            reason = f"the endpoint does not answer: {str(error) or type(error).__name__}"
            raise _RetryError(reason) from error
        if status == 200:
            return _read(content)
        reason = self._describe(status, content)
        if status in _HOPELESS:
            hint = " (does its address end in /v1, and is that the model's name?)"
            raise EndpointRefusedError(reason + (hint if status == 404 else ""))
        if status in (408, 409, 425, 429) or status >= 500:
            raise _RetryError(reason, retry_after_seconds(headers.get("retry-after", "").strip()))
        raise self._lost(reason)

    async def _send(self, body: bytes) -> tuple[int, httpx.Headers, bytes]:
        headers = {"Content-Type": "application/json"}
        content = bytearray()
        async with self._http.stream(
            "POST", "chat/completions", content=body, headers=headers
        ) as response:
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > _MOST_BYTES:
                    reason = f"the endpoint answered with more than {_MOST_BYTES} bytes"
                    raise _RetryError(reason)
            return response.status_code, response.headers, bytes(content)

    def _describe(self, status: int, content: bytes) -> str:
        text = " ".join(content.decode(errors="replace").split())
        if self._api_key:
            text = text.replace(self._api_key, "***")
        return f"the endpoint answered with status {status}: {text[:_SHOWN_CHARACTERS]}"


def _read(content: bytes) -> GeneratedSample:
    """Parse a chat completion. A missing text with a finish reason is an empty completion."""
    try:
        answer = json.loads(content)
        choice = answer["choices"][0]
        text, finish = choice["message"].get("content"), choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        reason = "the endpoint's answer is not a chat completion"
        raise _RetryError(reason) from None
    is_silent = text is None and isinstance(finish, str)
    if not isinstance(text, str) and not is_silent:
        reason = "the endpoint's answer has no text"
        raise _RetryError(reason)
    usage = answer.get("usage")
    return GeneratedSample(
        completion=text or "",
        finish_reason=finish if isinstance(finish, str) else None,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def _count(usage: Any, name: str) -> int | None:  # noqa: ANN401 - untrusted JSON
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int else None
