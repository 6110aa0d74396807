"""A scripted language model endpoint on loopback, well-behaved or faulty."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any, Self

from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    Behaviour = Callable[[dict[str, Any], asyncio.StreamWriter], Awaitable[None]]

MODEL = "some/frozen-model"
NUMBERS = {milestone.label: str(int(milestone)) for milestone in Milestone}


def respond(
    body: bytes, status: int = 200, headers: dict[str, str] | None = None, length: int | None = None
) -> bytes:
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {size}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def completion(content: object, finish: str = "stop", model: str = MODEL) -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"model": model, "choices": [choice]}).encode()


def says(content: object, finish: str = "stop", model: str = MODEL) -> Behaviour:
    return sends(respond(completion(content, finish, model)))


def marks(*pairs: tuple[int, str]) -> Behaviour:
    return says(lines_of(*pairs))


def lines_of(*pairs: tuple[object, str]) -> str:
    """Return the reply that names these lines for these milestones."""
    lines: dict[str, list[object]] = {str(int(milestone)): [] for milestone in Milestone}
    for line, label in pairs:
        lines[NUMBERS[label]].append(line)
    return json.dumps(lines)


def sends(data: bytes) -> Behaviour:
    async def behave(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return behave


def fails(status: int, **headers: str) -> Behaviour:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return sends(respond(b"{}", status, named))


async def hangs(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    await writer.wait_closed()


async def stalls(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    """Begin a reply and never end it."""
    writer.write(respond(b'{"model": ', length=1000))
    await writer.drain()
    await writer.wait_closed()


async def trickles(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    writer.write(respond(b"", length=1 << 20))
    while not writer.is_closing():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def floods(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    writer.write(respond(b"", length=8 << 30))
    while not writer.is_closing():
        writer.write(b" " * (1 << 16))
        await writer.drain()


async def breaks_off(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    writer.write(respond(completion("{}")[:20], length=1000))
    await writer.drain()
    writer.close()


async def until(condition: Callable[[], bool]) -> None:
    """Poll for a condition of another thread, which cannot set an event of this loop."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class ScriptedEndpoint:
    """Serves from its own thread; uses up `script` first, then follows `behave`."""

    def __init__(self) -> None:
        self.models: list[dict[str, Any]] = [{"id": MODEL}]
        self.behave: Behaviour = marks()
        self.script: list[Behaviour] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.model_probes = 0
        self.peak_concurrency = 0
        self._concurrency = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self.start_listening()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_listening()
        self._run(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def prompts(self) -> list[str]:
        return ["\n".join(m["content"] for m in body["messages"]) for body in self.requests]

    def start_listening(self) -> None:
        """Listen on the same port as before, unless it already does."""
        self._run(self._listen())

    def stop_listening(self) -> None:
        """Stop listening and drop every connection."""
        self._run(self._stop())

    def _run(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> None:
        if self._server is not None:
            return
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    @staticmethod
    async def _cancel_all() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await self._serve(head, reader, writer)
        self._writers.discard(writer)
        writer.close()

    async def _serve(
        self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if head.startswith("GET /v1/models "):
            self.model_probes += 1
            self.headers.append(head)
            writer.write(respond(json.dumps({"object": "list", "data": self.models}).encode()))
            return
        lengths = [line for line in head.split("\r\n") if line.lower().startswith("content-length")]
        body = json.loads(await reader.readexactly(int(lengths[0].split(":")[1])))
        if body["max_tokens"] == 1:  # the health probe of the endpoint client
            behave = says("yes") if self.behave is not hangs else hangs
        else:
            self.requests.append(body)
            self.headers.append(head)
            behave = self.script.pop(0) if self.script else self.behave
        self._concurrency += 1
        self.peak_concurrency = max(self.peak_concurrency, self._concurrency)
        try:
            await behave(body, writer)
        finally:
            self._concurrency -= 1
