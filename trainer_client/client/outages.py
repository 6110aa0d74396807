"""What a client does while the server is away.

`OutageTracker` limits how long the calls of one client wait together. `Backoff` keeps a training
step from waiting again and again for something that it can do without.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_client.client.errors import InfrastructureError

log = logging.getLogger(__name__)

_NEW_OUTAGE_SECONDS = 180.0
_FRESH_SECONDS = 5.0
_PAUSE_SECONDS = 30.0


class OutageTracker:
    """A sequence of failures without a reply between them.

    All calls of a client share it. Otherwise calls that take turns on few connections would each
    wait the full time for a server that is gone.
    """

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._since: float | None = None
        self._last = 0.0
        self._error: InfrastructureError | None = None

    def note_failure(self, now: float, error: InfrastructureError) -> None:
        """Record a failure. One long after the last begins a new outage."""
        if self._since is None or now - self._last > _NEW_OUTAGE_SECONDS:
            self._since = now
            log.warning("waiting for the reward server: %s", error)
        self._last, self._error = now, error

    def note_reply(self, now: float) -> None:
        """Record a reply."""
        if self._since is not None:
            log.warning("the reward server replies after %.0f seconds", now - self._since)
            self._since = None

    def is_too_long(self, now: float) -> bool:
        """Tell whether the outage has exceeded its limit."""
        return self._since is not None and now - self._since >= self._most_seconds

    def raise_if_given_up(self, now: float) -> None:
        """Fail without a request if the limit has passed and another call has just failed.

        Raises:
            InfrastructureError: the error of that call.
        """
        if self._error and self.is_too_long(now) and now - self._last < _FRESH_SECONDS:
            raise self._error.with_ids()


class Backoff:
    """Suspends requests for a while after a failure, and logs an outage once."""

    def __init__(self, loss: str, pause_seconds: float = _PAUSE_SECONDS) -> None:
        self._loss = loss
        self._pause_seconds = pause_seconds
        self._again_at = 0.0
        self._is_out = False

    def may_ask(self) -> bool:
        """Tell whether a request may be made now."""
        return not self._is_out or time.monotonic() >= self._again_at

    def failed(self, error: Exception) -> None:
        """Record that a request failed."""
        if not self._is_out:
            log.warning("%s until the reward server answers again: %r", self._loss, error)
        self._is_out = True
        self._again_at = time.monotonic() + self._pause_seconds

    def answered(self) -> None:
        """Record that a request succeeded."""
        if self._is_out:
            log.warning("the reward server answers again")
        self._is_out = False
