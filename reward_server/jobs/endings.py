"""Waking those who wait for jobs to end, without holding a connection for any of them.

Ends are told by the worker in this process, by the database's notifications, and in any case by
asking now and then: a notification may be lost, an end may not.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from uuid import UUID

    from reward_server.store.queue import Queue


class Expectation:
    """Jobs that somebody waits for; those that have ended come out one by one."""

    def __init__(self) -> None:
        self._ended: asyncio.Queue[UUID] = asyncio.Queue()

    def tell(self, job_id: UUID) -> None:
        """Say that a job has ended, or may have."""
        self._ended.put_nowait(job_id)

    async def any(self, seconds: float | None) -> set[UUID]:
        """Wait for a job to end and return all that have; nothing when the time is over."""
        try:
            async with asyncio.timeout(seconds):
                found = {await self._ended.get()}
        except TimeoutError:
            return set()
        while not self._ended.empty():
            found.add(self._ended.get_nowait())
        return found


class Endings:
    """Who waits for which job."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._expected: defaultdict[UUID, set[Expectation]] = defaultdict(set)
        self.told = 0

    @contextmanager
    def expect(self, job_ids: Iterable[UUID]) -> Iterator[Expectation]:
        """Be told of these jobs' ends from now on; what ended before must be looked up."""
        expectation, wanted = Expectation(), tuple(job_ids)
        for job_id in wanted:
            self._expected[job_id].add(expectation)
        try:
            yield expectation
        finally:
            for job_id in wanted:
                self._expected[job_id].discard(expectation)
                if not self._expected[job_id]:
                    del self._expected[job_id]

    def tell(self, job_id: UUID) -> None:
        """Wake whoever waits for this job."""
        self.told += 1
        for expectation in self._expected.get(job_id, ()):
            expectation.tell(job_id)

    async def among(self, job_ids: Collection[UUID]) -> set[UUID]:
        """Return which of these jobs have ended, by the database.

        Raises:
            InfrastructureError: `store_error`.
        """
        return await self._queue.ended(job_ids)

    async def look(self) -> None:
        """Ask the database for ends that nobody told us of.

        Raises:
            InfrastructureError: `store_error`; nothing is known then.
        """
        if self._expected:
            for job_id in await self._queue.ended(tuple(self._expected)):
                self.tell(job_id)
