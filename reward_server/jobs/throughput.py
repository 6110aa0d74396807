"""How fast jobs end while others wait; an idle server's rate says nothing."""

from __future__ import annotations

import time
from collections import deque

_WINDOW_SECONDS = 60.0
_ENOUGH_ENDS = 20
_LONGEST_WINDOW_SECONDS = 3600.0
_UNKNOWN_SECONDS = 5.0


class Throughput:
    """Ends over time, of the last minute, or as far back as it takes to see some."""

    def __init__(self) -> None:
        self._laps: deque[tuple[float, int]] = deque()
        self._seconds = 0.0
        self._ends = 0
        self._last: tuple[float, int] | None = None

    @property
    def rate(self) -> float:
        """Return how many jobs end per second, as if one ended now when none has yet."""
        if self._ends == 0:
            return 1 / max(_UNKNOWN_SECONDS, self._seconds)
        return self._ends / self._seconds

    def record(self, ends: int, *, has_waiting: bool, now: float | None = None) -> None:
        """Record how many jobs have ended in total, and whether others wait now."""
        moment = time.monotonic() if now is None else now
        if self._last is not None:
            self._add(moment - self._last[0], ends - self._last[1])
        self._last = (moment, ends) if has_waiting else None

    def _add(self, seconds: float, ends: int) -> None:
        self._laps.append((seconds, ends))
        self._seconds += seconds
        self._ends += ends
        while self._has_more_than_needed():
            old_seconds, old_ends = self._laps.popleft()
            self._seconds -= old_seconds
            self._ends -= old_ends

    def _has_more_than_needed(self) -> bool:
        seconds, ends = self._laps[0]
        rest = self._seconds - seconds
        is_enough = rest >= _WINDOW_SECONDS and self._ends - ends >= _ENOUGH_ENDS
        return is_enough or rest >= _LONGEST_WINDOW_SECONDS
