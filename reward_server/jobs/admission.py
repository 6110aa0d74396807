"""Who may come in: a bounded queue, a share of it for every key, and a true time to come back.

How much waits is counted in the database once a second and by what this process let in since, so
that letting a job in costs no count; several servers together may let in a second's worth more.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, OverloadedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reward_server.jobs.endings import Endings
    from reward_server.store.queue import Queue
    from reward_server.store.values import QueueState

_PERIOD_SECONDS = 1.0
_WINDOW_SECONDS = 60.0
_UNKNOWN_SECONDS = 5
_LONGEST_SECONDS = 3600


class Admission:
    """Counts what waits and refuses what does not fit."""

    def __init__(
        self, queue: Queue, endings: Endings, queue_limit: int, quotas: Mapping[str, int]
    ) -> None:
        self._queue = queue
        self._endings = endings
        self._limit = queue_limit
        self._quotas = quotas
        self._counted: Counter[str] = Counter()
        self._since: Counter[str] = Counter()
        self._seen: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        self.state: QueueState | None = None

    @property
    def queued(self) -> int:
        """Return about how many jobs wait."""
        return self._counted.total() + self._since.total()

    def admit(self, client: str, count: int = 1) -> None:
        """Let so many jobs of a client in.

        Raises:
            OverloadedError: when the queue or the client's share of it is full.
        """
        over = self.queued + count - self._limit
        quota = self._quotas.get(client)
        if quota is not None:
            over = max(over, self._counted[client] + self._since[client] + count - quota)
        if over > 0:
            message = "the queue is full; try again later"
            raise OverloadedError(message, self._seconds_until_free(over))
        self._since[client] += count

    def passed(self, client: str) -> None:
        """Say that a job did not have to wait after all."""
        self._since[client] = max(0, self._since[client] - 1)

    def _seconds_until_free(self, count: int) -> int:
        (first, before), (last, now) = self._seen[0], self._seen[-1]
        if now == before or last == first:
            return _UNKNOWN_SECONDS
        rate = (now - before) / (last - first)
        return max(1, min(_LONGEST_SECONDS, math.ceil(count / rate)))

    async def keep_counting(self) -> None:
        """Count for ever what waits in the database."""
        while True:
            await self.count()
            await asyncio.sleep(_PERIOD_SECONDS)

    async def count(self) -> None:
        """Count now; where the database does not answer, the last count stands."""
        let_in = self._since.copy()
        try:
            self.state = await self._queue.state()
        except InfrastructureError:
            return
        self._counted = Counter(self.state.queued_of)
        self._since -= let_in
        moment = time.monotonic()
        self._seen.append((moment, self._endings.told))
        while self._seen[0][0] < moment - _WINDOW_SECONDS:
            self._seen.popleft()
