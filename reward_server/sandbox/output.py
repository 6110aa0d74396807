"""The two streams of one run, and the milestones that come with the second."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from reward_server.sandbox.markers import MarkerScanner, make_tokens
from reward_server.sandbox.streams import Drain

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.model import Instrumented

_END_SECONDS = 15.0
_TAIL_BYTES = 1 << 15


class Output:
    """Pipes for a program to write to, read from the moment they exist."""

    def __init__(
        self, instrumented: Instrumented, most_bytes: int, on_excess: Callable[[], None]
    ) -> None:
        self.tokens = make_tokens({marker.milestone for marker in instrumented.markers})
        self.scanner = MarkerScanner(self.tokens)
        (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe()
        self.write_ends = [out_write, err_write]
        self.out = Drain(out_read, _TAIL_BYTES, most_bytes, on_excess)
        self._err = Drain(err_read, _TAIL_BYTES, most_bytes, on_excess, self.scanner.feed)

    @property
    def exceeded(self) -> bool:
        """Tell whether the program printed more than it may."""
        return self.out.exceeded or self._err.exceeded

    @property
    def total_bytes(self) -> int:
        """Return how much it has printed so far."""
        return self.out.total_bytes + self._err.total_bytes

    async def ended(self) -> None:
        """Wait for the end of both streams; every writer is dead by then."""
        async with asyncio.timeout(_END_SECONDS):
            await self.out.ended()
            await self._err.ended()

    def error_tail(self) -> str:
        """Return the end of the error stream, without markers."""
        return self._err.text(self.scanner.finish())

    def close(self) -> None:
        """Stop reading."""
        self.out.close()
        self._err.close()
