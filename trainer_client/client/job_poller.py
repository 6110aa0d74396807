"""Waiting for thousands of jobs over three connections.

Every job that somebody waits for is in one open poll, or about to be. A poll asks the server for
the first of many jobs to end, for up to its number of seconds. What comes while a long poll is
open does not wait for it but goes into a shorter one; when the shortest returns, what it had goes
into the longest that is free. So a newcomer waits a quarter of a second at most until it is asked
for, and many that take long are asked for seldom.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from trainer_client.client.answers import bad_answer
from trainer_client.client.errors import RewardServerError
from trainer_client.client.transport import POLLS, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer_client.client.transport import Transport

Ending = dict[str, Any]

_POLL_SECONDS = (0.25, 2.5, 25.0)
_MOST_IDS = 5_000  # the server takes twice as many
_PAUSE_SECONDS_PER_ID = 0.00005  # asking for many costs the server more, so it is asked less often
_GRACE_SECONDS = 30.0


class JobPoller:
    """Tells how jobs ended; it works only while somebody waits."""

    def __init__(self, wire: Transport) -> None:
        self._wire = wire
        self._waiting: dict[str, set[asyncio.Future[Ending]]] = {}
        self._loose: dict[str, None] = {}
        self._free = list(_POLL_SECONDS[-POLLS:])
        self._changed = asyncio.Event()
        self._polls: set[asyncio.Task[None]] = set()
        self._runner: asyncio.Task[None] | None = None

    async def ending(self, job_id: str) -> Ending:
        """Wait until a job has ended and return the server's word on it.

        Raises:
            RewardServerError: the server was not to be asked.
        """
        future: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        if job_id not in self._waiting:
            self._waiting[job_id] = set()
            self._loose[job_id] = None
        self._waiting[job_id].add(future)
        self._wake()
        try:
            return await future
        finally:
            self._forget(job_id, future)

    async def close(self) -> None:
        """Stop asking; whoever still waits is told so."""
        self._give_up("the client was closed while this was waited for")
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait({self._runner})

    def _wake(self) -> None:
        self._changed.set()
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run(), name="reward client: polls")
            self._runner.add_done_callback(self._on_end)

    def _on_end(self, runner: asyncio.Task[None]) -> None:
        if not runner.cancelled() and (bug := runner.exception()) is not None:
            self._give_up(f"the reward client failed: {bug!r}")

    def _give_up(self, reason: str) -> None:
        for job_id in list(self._waiting):
            self._fail(job_id, RuntimeError(reason))

    def _forget(self, job_id: str, future: asyncio.Future[Ending]) -> None:
        futures = self._waiting.get(job_id, set())
        futures.discard(future)
        if not futures:
            self._waiting.pop(job_id, None)
            self._loose.pop(job_id, None)
            self._changed.set()

    async def _run(self) -> None:
        while self._waiting:
            async with asyncio.TaskGroup() as group:
                while self._waiting:
                    self._changed.clear()
                    while self._loose and self._free:
                        self._open_poll(group)
                    await self._changed.wait()
                for poll in self._polls:
                    poll.cancel()

    def _open_poll(self, group: asyncio.TaskGroup) -> None:
        job_ids = list(itertools.islice(self._loose, _MOST_IDS))
        for job_id in job_ids:
            del self._loose[job_id]
        seconds = self._free.pop()
        poll = group.create_task(self._poll(job_ids, seconds))
        self._polls.add(poll)
        poll.add_done_callback(lambda poll: self._on_return(poll, job_ids, seconds))

    def _on_return(self, poll: asyncio.Task[None], job_ids: Sequence[str], seconds: float) -> None:
        """Take back what a poll had, also of one that was cancelled before it began."""
        self._polls.discard(poll)
        self._free = sorted([*self._free, seconds])
        self._loose.update((job_id, None) for job_id in job_ids if job_id in self._waiting)
        self._changed.set()

    async def _poll(self, job_ids: Sequence[str], seconds: float) -> None:
        try:
            endings = await self._ask(job_ids, seconds)
            for ending in endings:
                self._tell(ending)
            if endings:
                await asyncio.sleep(len(job_ids) * _PAUSE_SECONDS_PER_ID)
        except RewardServerError as error:
            for job_id in job_ids:
                self._fail(job_id, error.about(job_id=job_id))

    async def _ask(self, job_ids: Sequence[str], seconds: float) -> list[Ending]:
        body = {"job_ids": list(job_ids), "wait_seconds": seconds}
        request = Request("POST", "/v1/jobs/wait", body, answer_seconds=seconds + _GRACE_SECONDS)
        endings = (await self._wire.poll(request)).get("ended")
        if not isinstance(endings, list) or not all(map(_is_ending, endings)):
            message = "the answer of /v1/jobs/wait cannot be used"
            raise bad_answer(message)
        return endings

    def _tell(self, ending: Ending) -> None:
        for future in self._waiting.pop(ending["job_id"], set()):
            if not future.done():
                future.set_result(ending)

    def _fail(self, job_id: str, error: Exception) -> None:
        for future in self._waiting.pop(job_id, set()):
            if not future.done():
                future.set_exception(error)


def _is_ending(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("job_id"), str)
