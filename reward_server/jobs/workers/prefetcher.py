"""Instrumenting programs while they wait in the queue, for instrumenters that take long.

A language model takes seconds per program and serves many requests at once. This asks it about the
jobs that are next in the queue. The instrumenter stores its answers, so whichever worker leases the
job finds them. No job is leased for that, and nothing depends on it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.extract.completion import extract

if TYPE_CHECKING:
    from uuid import UUID

    from reward_server.instrument.base import Instrumenter
    from reward_server.model import Submission
    from reward_server.store.queue import Queue


_PAUSE_SECONDS = 0.25


class InstrumentationPrefetcher:
    """Instruments up to `most` programs that wait."""

    def __init__(self, instrumenter: Instrumenter, most: int) -> None:
        self._instrumenter = instrumenter
        self._most = most
        self._seen: set[UUID] = set()
        self._requests: set[asyncio.Task[None]] = set()
        self._next_at = 0.0

    async def prefetch(self, queue: Queue) -> None:
        """Start on what is new in the queue; calls in quick succession do nothing.

        Raises:
            InfrastructureError: `store_error`.
        """
        now = time.monotonic()
        if now < self._next_at:
            return
        self._next_at = now + _PAUSE_SECONDS
        waiting = await queue.peek(self._most)
        new = [job_id for job_id in waiting if job_id not in self._seen]
        self._seen.intersection_update(waiting)
        if new:
            submissions = await queue.submissions(new)
            self._seen.update(new)
            for submission in submissions:
                task = asyncio.create_task(self._instrument(submission))
                self._requests.add(task)
                task.add_done_callback(self._requests.discard)

    async def aclose(self) -> None:
        """Cancel the requests under way."""
        for task in self._requests:
            task.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)

    async def _instrument(self, submission: Submission) -> None:
        with suppress(InfrastructureError):  # the job's own attempt reports it
            await self._instrumenter.instrument(await asyncio.to_thread(extract, submission))
