"""How long the server has been away, as seen by all calls of a client together."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_client.client.errors import InfrastructureError

log = logging.getLogger(__name__)

_FORGOTTEN_SECONDS = 180.0
_FRESH_SECONDS = 5.0


class OutageTracker:
    """A row of failures without a reply between them.

    Without it, calls that take turns on few connections would each be patient anew with a server
    that is gone.
    """

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._since: float | None = None
        self._last = 0.0
        self._error: InfrastructureError | None = None

    def begin_or_go_on(self, now: float, error: InfrastructureError) -> None:
        """Note a failure; one long after the last is the beginning of another outage."""
        if self._since is None or now - self._last > _FORGOTTEN_SECONDS:
            self._since = now
            log.warning("waiting for the reward server: %s", error)
        self._last, self._error = now, error

    def end(self, now: float) -> None:
        """Note a reply."""
        if self._since is not None:
            log.warning("the reward server replies after %.0f seconds", now - self._since)
            self._since = None

    def is_too_long(self, now: float) -> bool:
        """Tell whether nobody should be patient any more."""
        return self._since is not None and now - self._since >= self._most_seconds

    def raise_if_hopeless(self, now: float) -> None:
        """Spare a try where it has been too long, and somebody has just found so.

        Raises:
            InfrastructureError: what was found.
        """
        if self._error and self.is_too_long(now) and now - self._last < _FRESH_SECONDS:
            raise self._error.about()
