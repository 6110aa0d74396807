"""A program's output: always drained, never trusted, kept only at its end."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK_BYTES = 1 << 16
_CHUNKS_PER_TURN = 8


class Tail:
    """Takes one stream in bounded memory, through a filter, and keeps its end."""

    def __init__(
        self,
        tail_bytes: int,
        most_bytes: int,
        on_excess: Callable[[], None],
        clean: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._tail_bytes = tail_bytes
        self._most_bytes = most_bytes
        self._on_excess = on_excess
        self._clean = clean
        self._tail = bytearray()
        self._kept_out = 0
        self.total_bytes = 0
        self.exceeded = False

    def take(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total_bytes += len(chunk)
        self._tail += self._clean(chunk)
        if len(self._tail) > 2 * self._tail_bytes:
            self._cut()
        if self.total_bytes > self._most_bytes and not self.exceeded:
            self.exceeded = True
            self._on_excess()

    def _cut(self) -> None:
        excess = max(0, len(self._tail) - self._tail_bytes)
        del self._tail[:excess]
        self._kept_out += excess

    def text(self, held: bytes = b"") -> str:
        """Return the last part of the stream as text, with a note of what was cut."""
        self._tail += held
        self._cut()
        text = self._tail.decode("utf-8", "replace")
        return f"[{self._kept_out} bytes cut]\n{text}" if self._kept_out else text


class Drain(Tail):
    """Reads one pipe to its end."""

    def __init__(
        self,
        descriptor: int,
        tail_bytes: int,
        most_bytes: int,
        on_excess: Callable[[], None],
        clean: Callable[[bytes], bytes] = bytes,
    ) -> None:
        super().__init__(tail_bytes, most_bytes, on_excess, clean)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        for _ in range(_CHUNKS_PER_TURN):
            try:
                chunk = os.read(self._descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                return
            if not chunk:
                self.close()
                return
            self.take(chunk)

    def close(self) -> None:
        """Stop reading and shut the pipe."""
        if not self._ended.done():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._ended.set_result(None)

    async def ended(self) -> None:
        """Wait for the end of the stream."""
        await self._ended
