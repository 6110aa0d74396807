"""A program's output: always drained, never trusted, kept only at its end.

`Tail` takes one stream, `PipeTail` reads one from a pipe, and `Output` holds both streams of a run
with the milestones that come with the second.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from reward_server.sandbox.milestones import MarkerScanner, count_earned, make_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.model import Milestone
    from reward_server.sandbox.payload import RunInstructions

_CHUNK_BYTES = 1 << 16
_CHUNKS_PER_TURN = 8
_END_SECONDS = 15.0
_TAIL_BYTES = 1 << 15


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
        self._cut_bytes = 0
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
        self._cut_bytes += excess

    def text(self, last: bytes = b"") -> str:
        """Return the last part of the stream as text, with a note of what was cut."""
        self._tail += last
        self._cut()
        text = self._tail.decode("utf-8", "replace")
        return f"[{self._cut_bytes} bytes cut]\n{text}" if self._cut_bytes else text


class PipeTail(Tail):
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
        """Stop reading and close the pipe."""
        if not self._ended.done():
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._ended.set_result(None)

    async def ended(self) -> None:
        """Wait for the end of the stream."""
        await self._ended


class Output:
    """What a program prints; the sandbox passes the bytes to `out` and `err`."""

    def __init__(
        self, instructions: RunInstructions, on_excess: Callable[[], object] = bool
    ) -> None:
        self._most_bytes = instructions.limits.output_bytes
        # An ad hoc program's output is kept whole.
        self._kept_bytes = _TAIL_BYTES if instructions.ad_hoc is None else self._most_bytes
        markers = instructions.instrumented.markers
        self.tokens = make_tokens({marker.milestone for marker in markers})
        self.on_excess = on_excess
        self._scanner = MarkerScanner(self.tokens)
        self.out = self._open(bytes)
        self.err = self._open(self._scanner.feed)

    def _open(self, clean: Callable[[bytes], bytes]) -> Tail:
        return Tail(self._kept_bytes, self._most_bytes, self._on_excess_of_one, clean)

    def _on_excess_of_one(self) -> None:
        self.on_excess()

    @property
    def exceeded(self) -> bool:
        """Tell whether the program printed more than it may."""
        return self.out.exceeded or self.err.exceeded

    @property
    def total_bytes(self) -> int:
        """Return how much it has printed so far."""
        return self.out.total_bytes + self.err.total_bytes

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        """Return the steps it has earned so far."""
        return count_earned(self._scanner.reached, self.tokens)

    def error_tail(self) -> str:
        """Return the end of the error stream, without markers."""
        return self.err.text(self._scanner.finish())


class PipedOutput(Output):
    """Pipes for a program to write to, read from the moment they exist."""

    def __init__(self, instructions: RunInstructions, on_excess: Callable[[], object]) -> None:
        self.write_ends: list[int] = []
        self._drains: list[PipeTail] = []
        super().__init__(instructions, on_excess)

    def _open(self, clean: Callable[[bytes], bytes]) -> Tail:
        read_end, write_end = os.pipe()
        self.write_ends.append(write_end)
        kept, most = self._kept_bytes, self._most_bytes
        self._drains.append(PipeTail(read_end, kept, most, self._on_excess_of_one, clean))
        return self._drains[-1]

    async def ended(self) -> None:
        """Wait for the end of both streams; every writer is dead by then."""
        async with asyncio.timeout(_END_SECONDS):
            for drain in self._drains:
                await drain.ended()

    def close(self) -> None:
        """Stop reading."""
        for drain in self._drains:
            drain.close()
