"""Relays between a client and a server that count and drop connections, and a fake server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from tests.support.lm_endpoints import respond

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class _Listener:
    """Serves on loopback from a thread of its own."""

    def __init__(self) -> None:
        self.accepted = 0
        self.open = 0
        self.most_open = 0
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _leave(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            with contextlib.suppress(
                OSError, asyncio.IncompleteReadError, asyncio.CancelledError
            ):  # the streams would print that they were cancelled
                await self._converse(reader, writer)
        finally:
            self.open -= 1
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


class TcpRelay(_Listener):
    """Passes bytes on; `drops` requests of one kind have their answer kept back."""

    def __init__(self, url: str, marker: bytes = b"", drops: int = 0) -> None:
        super().__init__()
        parts = urlsplit(url)
        self._there = (parts.hostname, parts.port)
        self._marker = marker
        self.drops = drops

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._there)
        dropping = asyncio.Event()
        back = asyncio.create_task(self._pass_back(there_reader, writer, dropping))
        try:
            while data := await reader.read(1 << 16):
                if self.drops and data.startswith(self._marker):
                    self.drops -= 1
                    dropping.set()
                there_writer.write(data)
                await there_writer.drain()
        finally:
            back.cancel()
            there_writer.transport.abort()

    @staticmethod
    async def _pass_back(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, dropping: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 16):
            if dropping.is_set():
                break
            writer.write(data)
            await writer.drain()
        writer.transport.abort()


@dataclass(frozen=True, slots=True)
class Heard:
    """A request that came to a server that lies."""

    line: str
    head: str
    body: dict[str, Any]
    at: float


class Liar(_Listener):
    """A server of which every reply is written by the test; None is silence."""

    def __init__(self, reply: Callable[[Heard], bytes | None]) -> None:
        super().__init__()
        self._reply = reply
        self.heard: list[Heard] = []

    def of(self, line: str) -> list[Heard]:
        return [one for one in self.heard if one.line == line]

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            sizes = [line for line in head.lower().split("\r\n") if "content-length:" in line]
            raw = await reader.readexactly(int(sizes[0].split(":")[1])) if sizes else b"{}"
            line = head.partition(" HTTP/")[0]
            one = Heard(line, head, json.loads(raw), time.monotonic())
            self.heard.append(one)
            reply = self._reply(one)
            if reply is None:
                await asyncio.sleep(3600)
            else:
                writer.write(reply)
                await writer.drain()


def reply(content: object, status: int = 200, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return respond(json.dumps(content).encode(), status, named)
