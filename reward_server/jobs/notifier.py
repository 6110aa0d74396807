"""Waking those who wait for jobs to end, without holding a connection for any of them.

Ends are told by the worker in this process, by the database's notifications, and in any case by
asking now and then for all who wait: a notification may be lost, an end may not.
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

    Told = dict[UUID, StoredAnswer | None]

_ASKED_AT_ONCE = 5_000
_LAST_WAIT_SECONDS = 1.0


class Subscription:
    """Jobs that somebody waits for; those that may have ended come out, with what is known."""

    def __init__(self, endings: CompletionNotifier, job_ids: Iterable[UUID]) -> None:
        self._endings = endings
        self.job_ids = set(job_ids)
        self._told: Told = {}
        self._woken = asyncio.Event()

    def tell(self, job_id: UUID, answer: StoredAnswer | None) -> None:
        """Say that a job has ended, or may have."""
        self._told[job_id] = answer or self._told.get(job_id)
        self._woken.set()

    def wake(self) -> None:
        """Let whoever waits go on without anything having ended."""
        self._woken.set()

    async def any(self, seconds: float | None) -> Told:
        """Wait for a job to end and return all that may have; nothing when the time is over.

        A server that is being stopped holds nobody for long.
        """
        if self._endings.is_stopping:
            seconds = min(_LAST_WAIT_SECONDS, _LAST_WAIT_SECONDS if seconds is None else seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
        told, self._told = self._told, {}
        return told

    def drop(self, job_ids: Iterable[UUID]) -> None:
        """Wait no longer for these."""
        self._endings.release(self, job_ids)
        self.job_ids.difference_update(job_ids)


class CompletionNotifier:
    """Who waits for which job."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._expected: defaultdict[UUID, set[Subscription]] = defaultdict(set)
        self.heard = 0
        self.is_stopping = False

    @contextmanager
    def expect(self, job_ids: Iterable[UUID]) -> Iterator[Subscription]:
        """Be told of these jobs' ends from now on; what ended before must be looked up."""
        expectation = Subscription(self, job_ids)
        for job_id in expectation.job_ids:
            self._expected[job_id].add(expectation)
        try:
            yield expectation
        finally:
            self.release(expectation, expectation.job_ids)

    def release(self, expectation: Subscription, job_ids: Iterable[UUID]) -> None:
        """Tell somebody of these jobs no more."""
        for job_id in job_ids:
            self._expected[job_id].discard(expectation)
            if not self._expected[job_id]:
                del self._expected[job_id]

    def tell(self, job_id: UUID, answer: StoredAnswer | None = None) -> None:
        """Wake whoever waits for this job, with its answer where it is at hand."""
        for expectation in self._expected.get(job_id, ()):
            expectation.tell(job_id, answer)

    def hear(self, job_id: UUID) -> None:
        """Take note of an end the database tells of: each is told once, wherever it happened."""
        self.heard += 1
        self.tell(job_id)

    def stop(self) -> None:
        """Let everybody go who waits, and hold nobody for long from now on."""
        self.is_stopping = True
        for expectation in {one for waiting in self._expected.values() for one in waiting}:
            expectation.wake()

    async def among(self, job_ids: Collection[UUID]) -> set[UUID]:
        """Return which of these jobs have ended, by the database.

        Raises:
            InfrastructureError: `store_error`.
        """
        return await self._queue.ended(job_ids)

    async def look(self) -> None:
        """Ask the database, for all who wait, for ends that nobody told us of.

        Raises:
            InfrastructureError: `store_error`; nothing is known then.
        """
        expected = tuple(self._expected)
        for first in range(0, len(expected), _ASKED_AT_ONCE):
            for job_id in await self._queue.ended(expected[first : first + _ASKED_AT_ONCE]):
                self.tell(job_id)
