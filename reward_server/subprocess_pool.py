"""Child processes that are asked one question at a time and replaced when they do not answer.

Whatever touches hostile bytes inside our own code (parsing a program, reading a submission)
happens in such a child, so that a crash, a memory bomb or an endless loop costs one answer
and not the server. Questions and answers are a JSON object and a blob of bytes; the child's
side of the conversation is `serve`.
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
    """The child died or ran out of time on this question; it has been replaced."""


class ChildPool:
    """A fixed number of children running the same module, each asked one question at a time."""

    def __init__(self, module: str, size: int, *arguments: str) -> None:
        self._command = (sys.executable, "-I", "-m", module, *arguments)
        self._idle: asyncio.LifoQueue[_Child] = asyncio.LifoQueue()
        self._children = [_Child(self._command) for _ in range(size)]
        for child in self._children:
            self._idle.put_nowait(child)

    async def start(self) -> None:
        """Start every child now instead of at its first question."""
        for child in self._children:
            await child.start()

    async def ask(self, question: Message, blob: bytes, deadline_seconds: float) -> Message:
        """Ask an idle child, waiting for one if all are busy.

        Raises:
            NoAnswerError: when the child died or did not answer in time.
            InfrastructureError: `worker_lost` when a child cannot be started.
        """
        child = await self._idle.get()
        try:
            return await child.ask(question, blob, deadline_seconds)
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

    async def ask(self, question: Message, blob: bytes, deadline_seconds: float) -> Message:
        process = await self.start()
        try:
            async with asyncio.timeout(deadline_seconds):
                return await self._converse(process, question, blob)
        except (TimeoutError, OSError, EOFError) as error:
            await self.kill()
            raise NoAnswerError from error
        except asyncio.CancelledError:
            await self.kill()
            raise

    @staticmethod
    async def _converse(
        process: asyncio.subprocess.Process, question: Message, blob: bytes
    ) -> Message:
        if process.stdin is None or process.stdout is None:
            raise EOFError
        process.stdin.write(_frame(question, blob))
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
    """Answer questions from standard input until it closes (the child's whole life)."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while header := questions.read(_HEADER.size):
        text_size, blob_size = _HEADER.unpack(header)
        question = json.loads(_read_exactly(questions, text_size))
        blob = _read_exactly(questions, blob_size)
        answers.write(_frame(answer(question, blob)))
        answers.flush()


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data
