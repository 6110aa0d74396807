"""Waits for thousands of jobs over three connections.

Every awaited job is part of one open long poll, or will be part of the next. A poll returns when
the first of its jobs ends, or after its number of seconds. A job that arrives while a long poll is
open goes into a shorter one. When a poll returns, its remaining jobs go into the longest free
one. So a new job waits a quarter of a second at most for its first poll, and the server gets few
requests about the many jobs that take long.
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

EndedJob = dict[str, Any]

_POLL_SECONDS = (0.25, 2.5, 25.0)
_MOST_IDS = 5_000  # half of what the server accepts
_PAUSE_SECONDS_PER_ID = 0.00005  # large polls cost the server more, so they are rarer
_GRACE_SECONDS = 30.0


class JobPoller:
    """Waits for jobs. It polls only while somebody waits."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: dict[str, set[asyncio.Future[EndedJob]]] = {}
        self._unpolled: dict[str, None] = {}
        self._free = list(_POLL_SECONDS[-POLLS:])
        self._changed = asyncio.Event()
        self._polls: set[asyncio.Task[None]] = set()
        self._runner: asyncio.Task[None] | None = None

    async def wait(self, job_id: str) -> EndedJob:
        """Wait until a job has ended and return what the server reports about it.

        Raises:
            RewardServerError: the poll failed.
        """
        future: asyncio.Future[EndedJob] = asyncio.get_running_loop().create_future()
        if job_id not in self._waiting:
            self._waiting[job_id] = set()
            self._unpolled[job_id] = None
        self._waiting[job_id].add(future)
        self._wake()
        try:
            return await future
        finally:
            self._forget(job_id, future)

    async def close(self) -> None:
        """Stop polling. Pending waits raise RuntimeError."""
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

    def _forget(self, job_id: str, future: asyncio.Future[EndedJob]) -> None:
        futures = self._waiting.get(job_id, set())
        futures.discard(future)
        if not futures:
            self._waiting.pop(job_id, None)
            self._unpolled.pop(job_id, None)
            self._changed.set()

    async def _run(self) -> None:
        while self._waiting:
            async with asyncio.TaskGroup() as group:
                while self._waiting:
                    self._changed.clear()
                    while self._unpolled and self._free:
                        self._open_poll(group)
                    await self._changed.wait()
                for poll in self._polls:
                    poll.cancel()

    def _open_poll(self, group: asyncio.TaskGroup) -> None:
        job_ids = list(itertools.islice(self._unpolled, _MOST_IDS))
        for job_id in job_ids:
            del self._unpolled[job_id]
        seconds = self._free.pop()
        poll = group.create_task(self._poll(job_ids, seconds))
        self._polls.add(poll)
        poll.add_done_callback(lambda poll: self._on_return(poll, job_ids, seconds))

    def _on_return(self, poll: asyncio.Task[None], job_ids: Sequence[str], seconds: float) -> None:
        """Take back the jobs of a poll, even of one that was cancelled before it began."""
        self._polls.discard(poll)
        self._free = sorted([*self._free, seconds])
        self._unpolled.update((job_id, None) for job_id in job_ids if job_id in self._waiting)
        self._changed.set()

    async def _poll(self, job_ids: Sequence[str], seconds: float) -> None:
        try:
            ended = await self._ask(job_ids, seconds)
            for ended_job in ended:
                self._resolve(ended_job)
            if ended:
                await asyncio.sleep(len(job_ids) * _PAUSE_SECONDS_PER_ID)
        except RewardServerError as error:
            for job_id in job_ids:
                self._fail(job_id, error.with_ids(job_id=job_id))

    async def _ask(self, job_ids: Sequence[str], seconds: float) -> list[EndedJob]:
        body = {"job_ids": list(job_ids), "wait_seconds": seconds}
        request = Request("POST", "/v1/jobs/wait", body, answer_seconds=seconds + _GRACE_SECONDS)
        ended = (await self._transport.poll(request)).get("ended")
        if not isinstance(ended, list) or not all(map(_is_ended_job, ended)):
            message = "the answer of /v1/jobs/wait cannot be used"
            raise bad_answer(message)
        return ended

    def _resolve(self, ended_job: EndedJob) -> None:
        for future in self._waiting.pop(ended_job["job_id"], set()):
            if not future.done():
                future.set_result(ended_job)

    def _fail(self, job_id: str, error: Exception) -> None:
        for future in self._waiting.pop(job_id, set()):
            if not future.done():
                future.set_exception(error)


def _is_ended_job(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("job_id"), str)
