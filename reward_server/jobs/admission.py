"""Admission control: a bounded queue, a share of it for every client, and honest retry times.

The database counts the queue once a second. In between, this process adds what it has admitted and
subtracts one for every job that ends, so that admitting a job costs no query. Several servers of
one database may together admit a second's worth too much.

A retry time follows from how fast jobs have ended while others waited. Each refused client gets a
reservation behind those who were refused just before.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, QueueFullError, RequestError
from reward_server.jobs.reservations import AdmissionReservations
from reward_server.jobs.throughput import Throughput
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reward_server.jobs.notifier import CompletionNotifier
    from reward_server.store.queue import Queue
    from reward_server.store.values import QueueState

_PERIOD_SECONDS = 1.0
_SHARE_OF_TIME = 0.02
_LONGEST_SECONDS = 3600


class Admission:
    """Counts what waits and refuses what does not fit."""

    def __init__(
        self,
        queue: Queue,
        notifier: CompletionNotifier,
        queue_limit: int,
        quotas: Mapping[str, int],
    ) -> None:
        self._queue = queue
        self._notifier = notifier
        self._limit = queue_limit
        self._quotas = quotas
        self._counted: Counter[str] = Counter()
        self._since: Counter[str] = Counter()
        self._inserting: Counter[str] = Counter()
        self._unsettled: Counter[str] = Counter()
        self._notifications = 0
        self._throughput = Throughput()
        self._reservations = AdmissionReservations()
        self.state: QueueState | None = None

    @property
    def queued(self) -> int:
        """Return about how many jobs wait."""
        ended = self._notifier.notifications - self._notifications
        return max(0, self._counted.total() - ended) + self._since.total()

    def admit(self, client: str, count: int = 1, ticket: str = "") -> None:
        """Admit so many jobs of a client; the ticket identifies a request that was refused before.

        Raises:
            QueueFullError: when the queue or the client's share of it is full.
            RequestError: `too_large` for what would not fit into an empty queue either.
        """
        quota = self._quotas.get(client, math.inf)
        most = min(quota, self._limit)
        if count > most:
            message = f"more jobs at once than may wait ({most:g}): send fewer"
            raise RequestError(ErrorKind.TOO_LARGE, message)
        # At most half of the queue: clients that never come back must not shut out the others.
        reserved = self._reservations.due_to_others(ticket, time.monotonic())
        reserved = min(reserved, self._limit // 2)
        own = self._counted[client] + self._since[client]
        over, over_quota = self.queued + reserved + count - self._limit, own + count - quota
        message = "the queue is full; try again later"
        if over > 0 and over >= over_quota:
            raise QueueFullError(message, self._reserve(ticket, over - reserved, count, 1.0))
        if over_quota > 0:
            share = own / max(own, self.queued)
            seconds = self._reserve(ticket, int(over_quota), count, share)
            raise QueueFullError(message, seconds + math.ceil(_PERIOD_SECONDS))
        self._reservations.remove(ticket)
        self._since[client] += count

    @contextmanager
    def inserting(self, client: str, count: int = 1) -> Iterator[None]:
        """Cover the statement that inserts admitted jobs, right after `admit`.

        A count that runs at the same time may see these jobs or miss them.
        """
        self._inserting[client] += count
        self._unsettled[client] += count
        try:
            yield
        finally:
            self._inserting[client] -= count

    def skip_queue(self, client: str) -> None:
        """Take back one admitted job: a worker leases it as it is accepted."""
        self._since[client] = max(0, self._since[client] - 1)

    def _reserve(self, ticket: str, over: int, count: int, share: float) -> int:
        """Return the seconds until so many more jobs have ended, and those reserved before."""
        rate = share * self._throughput.rate
        seconds = max(count, over + self._reservations.total) / rate
        granted = self._reservations.add(ticket, count, seconds, time.monotonic())
        return max(1, min(_LONGEST_SECONDS, math.ceil(granted)))

    async def keep_counting(self) -> None:
        """Count the queue forever, with longer pauses when counting takes long."""
        while True:
            begun = time.monotonic()
            await self.count()
            took_seconds = time.monotonic() - begun
            await asyncio.sleep(max(_PERIOD_SECONDS, took_seconds / _SHARE_OF_TIME))

    async def count(self) -> None:
        """Count now; if the database does not answer, the last count stands.

        A job whose insertion overlaps the count is unsettled: the count's snapshot has it or not,
        and forgetting it would let a client exceed its share until the next count. What waits is
        at least what was counted, and at most that plus all unsettled jobs; between these bounds
        the estimate of before holds.
        """
        self._unsettled = +self._inserting
        notifications = self._notifier.notifications
        try:
            self.state = await self._queue.state()
        except InfrastructureError:
            return
        counted = Counter(self.state.queued_of)
        # Counter subtraction drops what is not above zero, & takes the smaller of two counts.
        self._since = (self._counted + self._since - counted) & self._unsettled
        self._counted = counted
        self._notifications = notifications
        self._throughput.record(notifications, has_waiting=self.state.queued > 0)
