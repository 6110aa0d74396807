"""Who may come in: a bounded queue, a share of it for every key, and a true time to come back.

How much waits is counted in the database once a second; what this process let in since is added,
and for every end that was heard of one has left. So letting a job in costs no count; several
servers together may let in a second's worth more.

When there will be room is told by how fast jobs have ended while others waited. Whoever is refused
gets a place behind those who were refused just before, and finds it when he comes back.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, OverloadedError, RequestError
from reward_server.jobs.reservations import AdmissionReservations
from reward_server.jobs.throughput import Throughput
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reward_server.jobs.notifier import CompletionNotifier
    from reward_server.store.queue import Queue
    from reward_server.store.values import QueueState

_PERIOD_SECONDS = 1.0
_SHARE_OF_TIME = 0.02
_LONGEST_SECONDS = 3600


class Admission:
    """Counts what waits and refuses what does not fit."""

    def __init__(
        self, queue: Queue, endings: CompletionNotifier, queue_limit: int, quotas: Mapping[str, int]
    ) -> None:
        self._queue = queue
        self._endings = endings
        self._limit = queue_limit
        self._quotas = quotas
        self._counted: Counter[str] = Counter()
        self._since: Counter[str] = Counter()
        self._heard = 0
        self._throughput = Throughput()
        self._promises = AdmissionReservations()
        self.state: QueueState | None = None

    @property
    def queued(self) -> int:
        """Return about how many jobs wait."""
        left = self._endings.heard - self._heard
        return max(0, self._counted.total() - left) + self._since.total()

    def admit(self, client: str, count: int = 1, ticket: str = "") -> None:
        """Let so many jobs of a client in; by the ticket he is known who was refused before.

        Raises:
            OverloadedError: when the queue or the client's share of it is full.
            RequestError: `too_large` for what would not fit into an empty queue either.
        """
        quota = self._quotas.get(client, math.inf)
        most = min(quota, self._limit)
        if count > most:
            message = f"so many jobs at once are more than may wait ({most:g})"
            raise RequestError(ErrorKind.TOO_LARGE, message)
        # Never more than half of the queue: who does not come back must not shut out the others.
        kept = min(self._promises.kept_for_others(ticket, time.monotonic()), self._limit // 2)
        own = self._counted[client] + self._since[client]
        over, over_quota = self.queued + kept + count - self._limit, own + count - quota
        message = "the queue is full; try again later"
        if over > 0 and over >= over_quota:
            raise OverloadedError(message, self._promise(ticket, over - kept, count, 1.0))
        if over_quota > 0:
            share = own / max(own, self.queued)
            seconds = self._promise(ticket, int(over_quota), count, share)
            raise OverloadedError(message, seconds + math.ceil(_PERIOD_SECONDS))
        self._promises.redeem(ticket)
        self._since[client] += count

    def passed(self, client: str) -> None:
        """Say that a job did not have to wait after all."""
        self._since[client] = max(0, self._since[client] - 1)

    def _promise(self, ticket: str, over: int, count: int, share: float) -> int:
        """Return the seconds until so many jobs more have left, and those promised before."""
        rate = share * self._throughput.rate
        seconds = max(count, over + self._promises.ahead) / rate
        given = self._promises.give(ticket, count, seconds, time.monotonic())
        return max(1, min(_LONGEST_SECONDS, math.ceil(given)))

    async def keep_counting(self) -> None:
        """Count for ever what waits in the database; a long queue is not counted all the time."""
        while True:
            begun = time.monotonic()
            await self.count()
            took_seconds = time.monotonic() - begun
            await asyncio.sleep(max(_PERIOD_SECONDS, took_seconds / _SHARE_OF_TIME))

    async def count(self) -> None:
        """Count now; where the database does not answer, the last count stands."""
        let_in, heard = self._since.copy(), self._endings.heard
        try:
            self.state = await self._queue.state()
        except InfrastructureError:
            return
        self._counted = Counter(self.state.queued_of)
        self._since -= let_in
        self._heard = heard
        self._throughput.note(heard, is_waited_for=self.state.queued > 0)
