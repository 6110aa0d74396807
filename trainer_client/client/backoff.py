"""When to ask a server again that is away: the trainer stands still while it is asked."""

from __future__ import annotations

import logging
import time

log = logging.getLogger(__name__)

PAUSE_SECONDS = 30.0


class Backoff:
    """Keeps from asking for a while after a failure, and says once that there is an outage."""

    def __init__(self, loss: str, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._loss = loss
        self._pause_seconds = pause_seconds
        self._again_at = 0.0
        self._is_out = False

    def may_ask(self) -> bool:
        """Tell whether it is time to ask, the first time or again."""
        return not self._is_out or time.monotonic() >= self._again_at

    def failed(self, error: Exception) -> None:
        """Take note that nothing usable came back."""
        if not self._is_out:
            log.warning("%s until the reward server answers again: %r", self._loss, error)
        self._is_out = True
        self._again_at = time.monotonic() + self._pause_seconds

    def answered(self) -> None:
        """Take note of an answer."""
        if self._is_out:
            log.warning("the reward server answers again")
        self._is_out = False
