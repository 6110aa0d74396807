"""A proxy in front of Postgres that cuts connections at chosen statements, or blocks them.

Every member of a cluster has a gate of its own: a Unix socket in a folder. The proxy parses the
protocol far enough to know which statement comes next. It can lose a connection just before the
statement reaches Postgres, or just after its commit and before the reply.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

SOCKET = ".s.PGSQL.5432"
_CHUNK = 1 << 16
_READY = b"Z\0\0\0\5"


class Moment(Enum):
    """When a connection is cut; a statement cut `BEFORE` never reaches Postgres."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class ConnectionCut:
    """Lose the connection of the next statement with this text in it."""

    part: str
    moment: Moment


class Gate:
    """One member's connection to Postgres; may be used from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cuts: list[ConnectionCut] = []
        self.done: Counter[str] = Counter()
        self.late_answers = 0
        self._held_at: str | None = None
        self._awaited: str | None = None
        self._open = threading.Event()
        self._open.set()

    @property
    def is_blocked(self) -> bool:
        return not self._open.is_set()

    def block(self) -> None:
        """Let nothing through in either direction, like a pulled cable."""
        self._open.clear()

    def hold_at(self, part: str) -> None:
        """Block as soon as a statement with this text comes, before it passes."""
        self._held_at = self._awaited = part

    def unblock(self) -> None:
        self._held_at = None
        self._open.set()

    def on_query(self, query: str) -> None:
        if self._held_at is not None and self._held_at in query:
            self.block()

    def on_reply(self, query: str) -> None:
        if self._awaited is not None and self._awaited in query:
            self.late_answers += 1

    async def opened(self) -> None:
        while not self._open.is_set():  # noqa: ASYNC110 - set by other threads
            await asyncio.sleep(0.02)

    def cut_for(self, query: str) -> ConnectionCut | None:
        """Return the cut that waits for such a statement, once."""
        for cut in self.cuts:
            if cut.part in query:
                self.cuts.remove(cut)
                self.done[f"{cut.part} {cut.moment.value}"] += 1
                return cut
        return None


class _Connection:
    """One connection: its present query, and the cut that is about to happen."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._queries: dict[bytes, str] = {}
        self._query = ""
        self.loses_reply = False

    async def forward_queries(
        self, client: asyncio.StreamReader, server: asyncio.StreamWriter
    ) -> None:
        """Forward queries until the client leaves or a cut is due."""
        (length,) = struct.unpack(
            "!i", await client.readexactly(4)
        )  # the first message has no type byte
        server.write(struct.pack("!i", length) + await client.readexactly(length - 4))
        while True:
            kind = await client.readexactly(1)
            (length,) = struct.unpack("!i", await client.readexactly(4))
            body = await client.readexactly(length - 4)
            if await self._is_lost(kind, body):
                return
            await self._gate.opened()
            server.write(kind + struct.pack("!i", length) + body)
            if kind in b"SQX":
                await server.drain()

    async def _is_lost(self, kind: bytes, body: bytes) -> bool:
        if kind == b"P":
            name, query, _ = body.split(b"\0", 2)
            self._queries[name] = query.decode()
        elif kind == b"B":
            self._query = self._queries.get(body.split(b"\0", 2)[1], "")
        elif kind == b"Q":
            self._query = body.decode(errors="replace")
        if kind not in b"BQ":
            return False
        self._gate.on_query(self._query)
        cut = self._gate.cut_for(self._query)
        self.loses_reply = cut is not None and cut.moment is Moment.AFTER
        return cut is not None and cut.moment is Moment.BEFORE

    async def forward_replies(
        self, server: asyncio.StreamReader, client: asyncio.StreamWriter
    ) -> None:
        """Forward replies, unless a cut is due after the commit."""
        while chunk := await server.read(_CHUNK):
            await self._gate.opened()
            if self.loses_reply:
                # The statement is committed once Postgres reports that it is ready for the next.
                tail = chunk
                while chunk and tail[-6:-1] != _READY:
                    chunk = await server.read(_CHUNK)
                    tail += chunk
                return
            client.write(chunk)
            await client.drain()
            if chunk[-6:-1] == _READY:
                self._gate.on_reply(self._query)


class Proxy:
    """All gates before one Postgres, served by a thread."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def open_gate(self, folder: Path) -> Gate:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        gate = Gate(folder)

        async def on_connection(client: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._carry(gate, client, writer)

        async def serve() -> None:
            server = await asyncio.start_unix_server(on_connection, folder / SOCKET)
            self._servers.append(server)

        self._call(serve())
        return gate

    async def _carry(
        self, gate: Gate, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        connection, to_server = _Connection(gate), None
        try:
            await gate.opened()
            server, to_server = await asyncio.open_unix_connection(self._target / SOCKET)
            directions = {
                asyncio.create_task(connection.forward_queries(client, to_server)),
                asyncio.create_task(connection.forward_replies(server, to_client)),
            }
            try:
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in directions:
                    task.cancel()
                await asyncio.gather(*directions, return_exceptions=True)
        except OSError:
            pass  # Postgres is down: the client sees a closed connection
        finally:
            to_client.transport.abort()
            if to_server is not None:
                to_server.transport.abort()

    def _call(self, work: Coroutine[object, object, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        async def end() -> None:
            for server in self._servers:
                server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        with suppress(TimeoutError):
            self._call(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()


@contextmanager
def proxy_to(target: Path) -> Iterator[Proxy]:
    proxy = Proxy(target)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
