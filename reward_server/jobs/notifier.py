"""Waking those who wait for jobs to end, without holding a connection for any of them.

The worker in this process notifies directly, and the database's LISTEN/NOTIFY covers all others. A
notification can be lost, so the reaper also polls for everything that somebody waits for.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from uuid import UUID

    from reward_server.store.queue import Queue
    from reward_server.store.values import StoredAnswer

    Completions = dict[UUID, StoredAnswer | None]

_POLLED_AT_ONCE = 5_000
_LAST_WAIT_SECONDS = 1.0


class Subscription:
    """Jobs that somebody waits for, and which of them may have ended."""

    def __init__(self, notifier: CompletionNotifier, job_ids: Iterable[UUID]) -> None:
        self._notifier = notifier
        self.job_ids = set(job_ids)
        self._completions: Completions = {}
        self._woken = asyncio.Event()

    def notify(self, job_id: UUID, answer: StoredAnswer | None) -> None:
        """Note that a job has ended, or may have."""
        self._completions[job_id] = answer or self._completions.get(job_id)
        self._woken.set()

    def wake(self) -> None:
        """End the present wait, though no job has ended."""
        self._woken.set()

    async def wait(self, seconds: float | None) -> Completions:
        """Wait for a job to end; return all that may have, or nothing when the time is over.

        While the server stops, a wait is short.
        """
        if self._notifier.is_stopping:
            seconds = min(_LAST_WAIT_SECONDS, _LAST_WAIT_SECONDS if seconds is None else seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
        completions, self._completions = self._completions, {}
        return completions

    def drop(self, job_ids: Iterable[UUID]) -> None:
        """Stop waiting for these jobs."""
        self._notifier.unsubscribe(self, job_ids)
        self.job_ids.difference_update(job_ids)


class CompletionNotifier:
    """Who waits for which job."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._subscriptions: defaultdict[UUID, set[Subscription]] = defaultdict(set)
        self.notifications = 0
        self.is_stopping = False

    @contextmanager
    def subscribe(self, job_ids: Iterable[UUID]) -> Iterator[Subscription]:
        """Receive these jobs' ends from now on; the caller looks up those that ended before."""
        subscription = Subscription(self, job_ids)
        for job_id in subscription.job_ids:
            self._subscriptions[job_id].add(subscription)
        try:
            yield subscription
        finally:
            self.unsubscribe(subscription, subscription.job_ids)

    def unsubscribe(self, subscription: Subscription, job_ids: Iterable[UUID]) -> None:
        """Send a subscription nothing more about these jobs."""
        for job_id in job_ids:
            self._subscriptions[job_id].discard(subscription)
            if not self._subscriptions[job_id]:
                del self._subscriptions[job_id]

    def notify(self, job_id: UUID, answer: StoredAnswer | None = None) -> None:
        """Wake everybody who waits for this job, with its answer if it is at hand."""
        for subscription in self._subscriptions.get(job_id, ()):
            subscription.notify(job_id, answer)

    def on_notification(self, job_id: UUID) -> None:
        """Pass on a notification of the database, which sends one for every job that ends."""
        self.notifications += 1
        self.notify(job_id)

    def stop(self) -> None:
        """Wake everybody, and keep every wait short from now on."""
        self.is_stopping = True
        for subscription in {one for waiting in self._subscriptions.values() for one in waiting}:
            subscription.wake()

    async def find_ended(self, job_ids: Collection[UUID]) -> set[UUID]:
        """Return which of these jobs have ended, by the database."""
        return await self._queue.ended(job_ids)

    async def poll(self) -> None:
        """Ask the database which of the jobs that somebody waits for have ended."""
        expected = tuple(self._subscriptions)
        for first in range(0, len(expected), _POLLED_AT_ONCE):
            for job_id in await self._queue.ended(expected[first : first + _POLLED_AT_ONCE]):
                self.notify(job_id)
