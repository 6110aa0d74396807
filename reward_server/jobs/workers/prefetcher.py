"""Having programs instrumented while they still wait, where that takes long.

A language model answers in seconds and many questions at once. What waits next is shown to it
ahead of time; its answers are kept in the store, so that whichever worker takes the job finds
them there. Nothing is borrowed for that, and nothing depends on it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from reward_server.errors import InfrastructureError
from reward_server.extract.completion import extract

if TYPE_CHECKING:
    from uuid import UUID

    from reward_server.instrument.base import Instrumenter
    from reward_server.model import Submission
    from reward_server.store.queue import Queue


_PAUSE_SECONDS = 0.25


class Prefetcher(Protocol):
    """Prepares for what waits."""

    async def look(self, queue: Queue) -> None:
        """Look at the queue and begin with what is new there."""
        ...

    async def aclose(self) -> None:
        """Give up what is under way."""
        ...


class NoPrefetcher:
    """For instrumenters that answer at once."""

    async def look(self, queue: Queue) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""


class InstrumentationPrefetcher:
    """Shows programs to the instrumenter while they wait, up to so many."""

    def __init__(self, instrumenter: Instrumenter, most: int) -> None:
        self._instrumenter = instrumenter
        self._most = most
        self._seen: set[UUID] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._next_look = 0.0

    async def look(self, queue: Queue) -> None:
        """Look at the queue, not too often, and begin with what is new there.

        Raises:
            InfrastructureError: `store_error`.
        """
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _PAUSE_SECONDS
        waiting = await queue.peek(self._most)
        new = [job_id for job_id in waiting if job_id not in self._seen]
        self._seen.intersection_update(waiting)
        if new:
            submissions = await queue.submissions(new)
            self._seen.update(new)
            for submission in submissions:
                task = asyncio.create_task(self._ask(submission))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)

    async def aclose(self) -> None:
        """Give up what is under way."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    async def _ask(self, submission: Submission) -> None:
        with suppress(InfrastructureError):  # it will be said when the program's turn comes
            await self._instrumenter.instrument(await asyncio.to_thread(extract, submission))
