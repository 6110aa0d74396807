"""Accepted work: durable before it is acknowledged, run to its end whoever hangs up.

A job runs in a task of this process, not of the request that brought it. A fault of ours that
may pass is tried again here, each time as a new attempt. After a restart, jobs that had not
ended are taken up again; the store keeps results unique.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from reward_server.errors import InfrastructureError, RequestError
from reward_server.model import ErrorKind
from reward_server.pipeline import walk
from reward_server.store.rows import parse_parent_id
from reward_server.store.values import JobState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from uuid import UUID

    from reward_server.model import Submission
    from reward_server.pipeline import Rooms
    from reward_server.store.queries import Store
    from reward_server.store.values import JobRow, StoredAnswer
    from reward_server.tasks.base import Task
    from reward_server.tasks.registry import Registry

log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 15.0
# A grader that failed would fail again on the same file, after another whole run of the program;
# a store that failed may have kept the result.
_MAY_PASS = frozenset(
    {ErrorKind.SANDBOX_LOST, ErrorKind.SANDBOX_UNAVAILABLE, ErrorKind.WORKER_LOST}
)


class JobRunner:
    """Takes submissions in, runs them, and tells how they ended."""

    def __init__(
        self, rooms: Rooms, store: Store, registry: Registry, queue_limit: int, max_attempts: int
    ) -> None:
        self._rooms = rooms
        self._store = store
        self._registry = registry
        self._queue_limit = queue_limit
        self._max_attempts = max_attempts
        self._group = asyncio.TaskGroup()
        self._arriving = 0
        self._running: dict[UUID, asyncio.Task[StoredAnswer | None]] = {}

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        for job in await self._store.unfinished():
            await self._resume(job)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._running.values():
            task.cancel()
        await self._group.__aexit__(kind, error, trace)

    @property
    def depth(self) -> int:
        """Return how many jobs have not ended."""
        return len(self._running) + self._arriving

    async def submit(
        self, submission: Submission, body_digest: str, idempotency_key: str | None
    ) -> UUID:
        """Accept a submission and return its job; a known key joins the job it belongs to.

        Raises:
            RequestError: `unknown_task`, `invalid_request`, `conflict` or `overloaded`.
            InfrastructureError: `store_error`; nothing was accepted.
        """
        task = self._registry.get(submission.task_id)
        _check_wall(submission, task)
        await self._check_parent(submission)
        with self._place_in_queue():
            accepted = await self._store.accept(submission, body_digest, idempotency_key)
            if accepted.is_new:
                last = accepted.attempt + self._max_attempts - 1
                self._start(accepted.job_id, accepted.attempt, last, submission, task)
        return accepted.job_id

    @contextmanager
    def _place_in_queue(self) -> Iterator[None]:
        """Hold a place while a job is being accepted, so that all together stay within bounds."""
        if self.depth >= self._queue_limit:
            message = "the queue is full; try again later"
            raise RequestError(ErrorKind.OVERLOADED, message)
        self._arriving += 1
        try:
            yield
        finally:
            self._arriving -= 1

    async def _check_parent(self, submission: Submission) -> None:
        parent = parse_parent_id(submission.parent_id)
        if parent is not None and not await self._store.has_solution(parent):
            message = "parent_id is not the id of a stored solution"
            raise RequestError(ErrorKind.INVALID_REQUEST, message)

    async def wait(self, job_id: UUID, seconds: float | None) -> StoredAnswer | JobState:
        """Wait for a job to end and return its answer, or its state if it has not ended.

        Raises:
            InfrastructureError: the job ended without a reward.
            RequestError: `not_found`.
        """
        task = self._running.get(job_id)
        if task is not None:
            await asyncio.wait({task}, timeout=seconds)
            if not task.done():
                return JobState.RUNNING
            if not task.cancelled() and (answer := task.result()) is not None:
                return answer
        stored = await self._store.answer(job_id)
        if stored is not None:
            return stored
        job = await self._store.job(job_id)
        if job is None:
            message = "there is no such job"
            raise RequestError(ErrorKind.NOT_FOUND, message)
        if job.state is JobState.CANCELLED:
            message = "the job was cancelled"
            raise InfrastructureError(ErrorKind.CANCELLED, message)
        if job.error is not None:
            raise InfrastructureError(job.error.kind, job.error.message)
        return job.state

    async def _resume(self, job: JobRow) -> None:
        try:
            task = self._registry.get(job.submission.task_id)
        except RequestError as error:
            await self._store.fail(
                job.job_id, job.attempt, ErrorKind.WORKER_LOST, f"not resumed: {error.message}"
            )
            return
        if job.attempt >= self._max_attempts:
            message = "given up after repeated interruptions"
            await self._store.fail(job.job_id, job.attempt, ErrorKind.WORKER_LOST, message)
            return
        attempt = await self._store.begin(job.job_id)
        if attempt is not None:
            self._start(job.job_id, attempt, self._max_attempts, job.submission, task)

    def _start(
        self, job_id: UUID, attempt: int, last_attempt: int, submission: Submission, task: Task
    ) -> None:
        run = self._run(job_id, attempt, last_attempt, submission, task)
        running = self._group.create_task(run)
        self._running[job_id] = running
        running.add_done_callback(lambda _: self._running.pop(job_id, None))

    async def _run(
        self, job_id: UUID, attempt: int, last_attempt: int, submission: Submission, task: Task
    ) -> StoredAnswer | None:
        for pause_seconds in _pauses():
            try:
                return await walk(job_id, attempt, submission, task, self._rooms)
            except InfrastructureError as error:
                may_pass = error.kind in _MAY_PASS and attempt < last_attempt
                following = await self._retry(job_id, attempt) if may_pass else None
                if following is None:
                    log.error("job %s ended without a reward: %s", job_id, error.message)  # noqa: TRY400
                    await self._give_up(job_id, attempt, error)
                    return None
                log.warning("job %s is tried again: %s", job_id, error.message)
                attempt = following
            await asyncio.sleep(pause_seconds)
        return None

    async def _retry(self, job_id: UUID, attempt: int) -> int | None:
        """Open the next attempt, or none: the job is another's, or the store is out of reach."""
        try:
            return await self._store.retry(job_id, attempt)
        except InfrastructureError:
            return None

    async def _give_up(self, job_id: UUID, attempt: int, error: InfrastructureError) -> None:
        """Mark the job as errored, trying until the store takes it: no job stays open."""
        for pause_seconds in _pauses():
            try:
                await self._store.fail(job_id, attempt, error.kind, error.message)
            except InfrastructureError:
                await asyncio.sleep(pause_seconds)
            else:
                return


def _pauses() -> Iterator[float]:
    """Yield pauses that grow up to a bound, without end."""
    pause_seconds = _FIRST_PAUSE_SECONDS
    while True:
        yield pause_seconds
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


def _check_wall(submission: Submission, task: Task) -> None:
    asked, most = submission.wall_seconds, task.card.wall_seconds
    if asked is not None and asked > most:
        message = f"wall_seconds is above this task's limit of {most:g}"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)
