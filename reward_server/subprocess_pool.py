"""A pool of child processes that answer one request at a time and are replaced when they hang.

The server's own code touches hostile bytes (parsing a program, reading a submission) only in such a
child, so that a crash, a memory bomb or an endless loop costs one request and not the server. A
request is a JSON object and a blob of bytes, a reply a JSON object; `serve` is the child's side.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import struct
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable

_HEADER = struct.Struct("!II")
Message = dict[str, Any]


class NoAnswerError(Exception):
    """The child died or timed out on this request; a new child replaces it."""


class SubprocessPool:
    """A fixed number of children that run the same module, with one request each at a time."""

    def __init__(self, module: str, size: int, *arguments: str) -> None:
        self._command = (sys.executable, "-I", "-m", module, *arguments)
        self._idle: asyncio.LifoQueue[_Child] = asyncio.LifoQueue()
        self._children = [_Child(self._command) for _ in range(size)]
        for child in self._children:
            self._idle.put_nowait(child)

    async def start(self) -> None:
        """Start every child now instead of at its first request."""
        for child in self._children:
            await child.start()

    async def ask(self, request: Message, blob: bytes, deadline_seconds: float) -> Message:
        """Send a request to an idle child, waiting for one if all are busy.

        Raises:
            NoAnswerError: when the child died or did not answer in time.
            InfrastructureError: `worker_lost` when a child cannot be started.
        """
        child = await self._idle.get()
        try:
            return await child.ask(request, blob, deadline_seconds)
        finally:
            self._idle.put_nowait(child)

    async def aclose(self) -> None:
        """Kill every child."""
        for child in self._children:
            await child.kill()


class _Child:
    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            message = "a helper process could not be started"
            raise InfrastructureError(ErrorKind.WORKER_LOST, message) from error
        return self._process

    async def ask(self, request: Message, blob: bytes, deadline_seconds: float) -> Message:
        process = await self.start()
        try:
            async with asyncio.timeout(deadline_seconds):
                return await self._converse(process, request, blob)
        except (TimeoutError, OSError, EOFError) as error:
            await self.kill()
            raise NoAnswerError from error
        except asyncio.CancelledError:
            await self.kill()
            raise

    @staticmethod
    async def _converse(
        process: asyncio.subprocess.Process, request: Message, blob: bytes
    ) -> Message:
        if process.stdin is None or process.stdout is None:
            raise EOFError
        process.stdin.write(_frame(request, blob))
        await process.stdin.drain()
        text_size, _ = _HEADER.unpack(await process.stdout.readexactly(_HEADER.size))
        answer: Message = json.loads(await process.stdout.readexactly(text_size))
        return answer

    async def kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _frame(message: Message, blob: bytes = b"") -> bytes:
    text = json.dumps(message).encode()
    return _HEADER.pack(len(text), len(blob)) + text + blob


def serve(answer: Callable[[Message, bytes], Message], memory_bytes: int) -> None:
    """Answer requests from standard input until it closes: the child's main loop."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while header := requests.read(_HEADER.size):
        text_size, blob_size = _HEADER.unpack(header)
        request = json.loads(_read_exactly(requests, text_size))
        blob = _read_exactly(requests, blob_size)
        replies.write(_frame(answer(request, blob)))
        replies.flush()


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data
