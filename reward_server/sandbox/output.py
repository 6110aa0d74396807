"""The two streams of one run, and the milestones that come with the second."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from reward_server.sandbox.milestones import MarkerScanner, count_earned, make_tokens
from reward_server.sandbox.streams import Drain, Tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.model import AdHocProgram, Instrumented, Milestone

_END_SECONDS = 15.0
_TAIL_BYTES = 1 << 15


def kept_bytes(errand: AdHocProgram | None, most_bytes: int) -> int:
    """Return how much of each stream is told: all of it where the output is what is wanted."""
    return _TAIL_BYTES if errand is None else most_bytes


class Output:
    """What a program prints, given to `out` and `err` by whoever has the bytes."""

    def __init__(
        self,
        instrumented: Instrumented,
        most_bytes: int,
        on_excess: Callable[[], object] = bool,
        kept_bytes: int = _TAIL_BYTES,
    ) -> None:
        self._kept_bytes = kept_bytes
        self.tokens = make_tokens({marker.milestone for marker in instrumented.markers})
        self.on_excess = on_excess
        self._scanner = MarkerScanner(self.tokens)
        self.out = self._open(most_bytes, bytes)
        self.err = self._open(most_bytes, self._scanner.feed)

    def _open(self, most_bytes: int, clean: Callable[[bytes], bytes]) -> Tail:
        return Tail(self._kept_bytes, most_bytes, self._end_early, clean)

    def _end_early(self) -> None:
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

    def __init__(
        self,
        instrumented: Instrumented,
        most_bytes: int,
        on_excess: Callable[[], object],
        kept_bytes: int = _TAIL_BYTES,
    ) -> None:
        self.write_ends: list[int] = []
        self._drains: list[Drain] = []
        super().__init__(instrumented, most_bytes, on_excess, kept_bytes)

    def _open(self, most_bytes: int, clean: Callable[[bytes], bytes]) -> Tail:
        read_end, write_end = os.pipe()
        self.write_ends.append(write_end)
        self._drains.append(Drain(read_end, self._kept_bytes, most_bytes, self._end_early, clean))
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
