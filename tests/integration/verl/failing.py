"""A server that fails often: the real one, behind something that loses two jobs of five."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

import httpx

from tests.support.lm_endpoints import respond
from tests.support.relays import _Listener

if TYPE_CHECKING:
    import asyncio

LOST = {
    "kind": "sandbox_lost",
    "blame": "infra",
    "retryable": True,
    "message": "the box was lost",
}


def is_lost(job_id: str) -> bool:
    """Tell whether a job is one of the two of five; a second try finds it lost again."""
    return zlib.crc32(job_id.encode()) % 5 < 2


class FailingServer(_Listener):
    """Forwards requests, and reports an infrastructure failure for some jobs."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._there = url
        self.lost: set[str] = set()
        self.kept: set[str] = set()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with httpx.AsyncClient(base_url=self._there, timeout=600) as there:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *lines = head.rstrip().split("\r\n")
                fields = dict(one.lower().split(": ", 1) for one in lines)
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                writer.write(await self._pass(there, line, body))
                await writer.drain()

    async def _pass(self, there: httpx.AsyncClient, line: str, body: bytes) -> bytes:
        method, path, _ = line.split(" ")
        reply = await there.request(
            method, path, content=body, headers={"content-type": "application/json"}
        )
        content = reply.content
        if path == "/v1/jobs/wait" and reply.status_code == 200:
            content = json.dumps(self._lose(reply.json())).encode()
        kept = {"Content-Type": reply.headers.get("content-type", "application/json")}
        return respond(content, reply.status_code, kept)

    def _lose(self, reply: dict[str, Any]) -> dict[str, Any]:
        for ending in reply["ended"]:
            if is_lost(ending["job_id"]):
                ending.update(answer=None, error=LOST)
                self.lost.add(ending["job_id"])
            else:
                self.kept.add(ending["job_id"])
        return reply
