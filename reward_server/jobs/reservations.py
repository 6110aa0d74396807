"""Places in line for those who were refused, known by what they asked for.

Whoever comes back with the same request when he was told to finds his place kept for a while, so
that it does not go to somebody who never waited.
"""

from __future__ import annotations

from dataclasses import dataclass

_KEPT_SECONDS = 10.0
_MOST_PLACES = 1_000


@dataclass(frozen=True, slots=True)
class _Reservation:
    due: float
    count: int


class AdmissionReservations:
    """Who was told to come back when, and with how many jobs."""

    def __init__(self) -> None:
        self._given: dict[str, _Reservation] = {}
        self.ahead = 0

    def kept_for_others(self, ticket: str, now: float) -> int:
        """Return how many places must be left to others whose time has come."""
        for old in [t for t, p in self._given.items() if p.due + _KEPT_SECONDS < now]:
            self.redeem(old)
        due = {t: p.count for t, p in self._given.items() if p.due <= now}
        return 0 if ticket in due else sum(due.values())

    def give(self, ticket: str, count: int, seconds: float, now: float) -> float:
        """Promise places and return after how many seconds; a second call before only repeats it.

        However many are refused, there is an end to what is promised.
        """
        known = self._given.get(ticket)
        if known is not None and known.due > now:
            return known.due - now
        self.redeem(ticket)
        if self.ahead + count <= _MOST_PLACES:
            self._given[ticket] = _Reservation(now + seconds, count)
            self.ahead += count
        return seconds

    def redeem(self, ticket: str) -> None:
        """Forget a promise that was kept, or never fetched."""
        if ticket in self._given:
            self.ahead -= self._given.pop(ticket).count
