"""Pausing a worker while no sandbox can start.

When a sandbox cannot start, the next job would fare no better. The worker then tries one job at a
time, at growing intervals, and leaves the others in the queue for workers elsewhere.
"""

from __future__ import annotations

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0


class CircuitBreaker:
    """Counts how often in a row no sandbox could start; open while the last start failed."""

    def __init__(self) -> None:
        self._failures = 0

    @property
    def is_open(self) -> bool:
        """Return whether the last sandbox failed to start."""
        return self._failures > 0

    @property
    def pause_seconds(self) -> float:
        """Return how long to wait before the next attempt."""
        if not self._failures:
            return 0.0
        doublings = min(self._failures - 1, 16)
        return min(_FIRST_PAUSE_SECONDS * 2.0**doublings, _LONGEST_PAUSE_SECONDS)

    def record_failure(self) -> None:
        """Count a sandbox that could not start."""
        self._failures += 1

    def record_success(self) -> None:
        """Close the breaker: a program has run."""
        self._failures = 0
