"""A minimal HTTP client: thousands of connections on the machine of the measured server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class MeteredReply:
    """A response of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    def content(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the body as JSON."""
        return json.loads(self.body)


class WireMeter:
    """A keep-alive connection with one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> MeteredReply:
        """Send a GET request."""
        return await self._ask(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())

    async def post(self, path: str, content: object) -> MeteredReply:
        """Send a POST request with JSON."""
        body = json.dumps(content).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return await self._ask(head.encode() + body)

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _ask(self, message: bytes) -> MeteredReply:
        if self._streams is None:
            self._streams = await asyncio.open_connection(HOST, self._port)
        reader, writer = self._streams
        try:
            writer.write(message)
            await writer.drain()
            return await _read(reader)
        except BaseException:
            self.close()
            raise


async def _read(reader: asyncio.StreamReader) -> MeteredReply:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in head[1:] if line)
    headers = {name.lower(): value for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return MeteredReply(int(head[0].split(" ", 2)[1]), headers, body)
