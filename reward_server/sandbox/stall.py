"""Ends a program that stalls: no output and no CPU time for as long as its task allows.

CPU time below a hundredth of a core counts as none, so that a thread that only polls does not keep
a hung program alive. A program that computes in silence continues, and so does one that sleeps and
prints something now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST_CORE_SHARE = 0.01
_SAMPLES = 10
_LONGEST_PAUSE_SECONDS = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS = slice(11, 15)  # own and waited-for children's, user and system


@dataclass(frozen=True, slots=True)
class ActivitySample:
    """What a program has done so far, as the server can observe it."""

    output_bytes: int
    cpu_seconds: float


class StallDetector:
    """Watches a program while the block lasts, and ends it when it stalls.

    Without a limit in seconds it watches nothing.
    """

    def __init__(
        self, seconds: float | None, sample: Callable[[], ActivitySample], end: Callable[[], None]
    ) -> None:
        self.stalled = False
        self._seconds = seconds
        self._sample = sample
        self._end = end
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._seconds is not None:
            self._task = asyncio.create_task(self._watch(self._seconds))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self, seconds: float) -> None:
        last, since = self._sample(), time.monotonic()
        while True:
            await asyncio.sleep(min(seconds / _SAMPLES, _LONGEST_PAUSE_SECONDS))
            now, elapsed = self._sample(), time.monotonic() - since
            if _is_active(last, now, elapsed):
                last, since = now, time.monotonic()
            elif elapsed >= seconds:
                self.stalled = True
                self._end()


def _is_active(before: ActivitySample, now: ActivitySample, elapsed_seconds: float) -> bool:
    spent_seconds = now.cpu_seconds - before.cpu_seconds
    return (
        now.output_bytes > before.output_bytes
        or spent_seconds > _LEAST_CORE_SHARE * elapsed_seconds
    )


def family_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants, where no cgroup counts it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        below = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it died meanwhile
        return 0.0
    own = sum(int(field) for field in fields[_CPU_FIELDS]) / _TICKS
    return own + sum(family_cpu_seconds(int(child)) for text in below for child in text.split())
