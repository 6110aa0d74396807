"""Not taking jobs while there is nothing to run them in.

When a sandbox cannot be had, the next job would fare no better than the last: a worker then tries
one job at a time, at growing intervals, and the others wait where another worker may find them.
"""

from __future__ import annotations

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0


class Breaker:
    """Counts how often in a row no program could be begun."""

    def __init__(self) -> None:
        self._failures = 0

    @property
    def is_open(self) -> bool:
        """Return whether the last attempt to begin a program failed."""
        return self._failures > 0

    @property
    def pause_seconds(self) -> float:
        """Return how long to wait before the next attempt."""
        if not self._failures:
            return 0.0
        doublings = min(self._failures - 1, 16)
        return min(_FIRST_PAUSE_SECONDS * 2.0**doublings, _LONGEST_PAUSE_SECONDS)

    def failed(self) -> None:
        """Note that a program could not be begun."""
        self._failures += 1

    def passed(self) -> None:
        """Note that a program was run."""
        self._failures = 0
