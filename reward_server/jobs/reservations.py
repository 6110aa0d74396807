"""Reservations for refused requests, recognised by what they ask for.

A client that repeats its request after the retry time finds a place in the queue, which is reserved
for a while so that it does not go to a client that never waited.
"""

from __future__ import annotations

from dataclasses import dataclass

_KEPT_SECONDS = 10.0
_MOST_JOBS = 1_000


@dataclass(frozen=True, slots=True)
class _Reservation:
    due: float
    count: int


class AdmissionReservations:
    """Who may come back when, and with how many jobs."""

    def __init__(self) -> None:
        self._reservations: dict[str, _Reservation] = {}
        self.total = 0

    def due_to_others(self, ticket: str, now: float) -> int:
        """Return how many jobs of others may come now; nothing is held back from a due ticket."""
        reserved = self._reservations
        for old in [t for t, r in reserved.items() if r.due + _KEPT_SECONDS < now]:
            self.remove(old)
        due = {t: r.count for t, r in reserved.items() if r.due <= now}
        return 0 if ticket in due else sum(due.values())

    def add(self, ticket: str, count: int, seconds: float, now: float) -> float:
        """Reserve places and return after how many seconds; asking again early changes nothing.

        The sum of all reservations is bounded, however many requests are refused.
        """
        known = self._reservations.get(ticket)
        if known is not None and known.due > now:
            return known.due - now
        self.remove(ticket)
        if self.total + count <= _MOST_JOBS:
            self._reservations[ticket] = _Reservation(now + seconds, count)
            self.total += count
        return seconds

    def remove(self, ticket: str) -> None:
        """Remove a reservation that was used, or has expired."""
        if ticket in self._reservations:
            self.total -= self._reservations.pop(ticket).count
