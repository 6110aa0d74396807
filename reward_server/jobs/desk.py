"""The front desk: takes submissions in, tells how they ended, cancels them.

Accepted means committed: what has an id here goes on whoever hangs up or dies. Where a worker of
this process has a place and nothing else waits, a job is lent to it as it is accepted.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, OverloadedError, RequestError
from reward_server.jobs.bounds import budget_seconds
from reward_server.model import ErrorKind, Priority
from reward_server.store.rows import parse_parent_id
from reward_server.store.values import Claimed, JobState, Order

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

    from reward_server.jobs.admission import Admission
    from reward_server.jobs.bounds import Bounds
    from reward_server.jobs.endings import Endings
    from reward_server.jobs.worker import Worker
    from reward_server.model import Submission
    from reward_server.store.batches import Batches
    from reward_server.store.queries import Store
    from reward_server.store.values import Accepted, BatchItem, BatchRow, JobRow, StoredAnswer
    from reward_server.tasks.base import Task
    from reward_server.tasks.registry import Registry

_POLL_SECONDS = 5.0
_MOST_TOLD = 256


@dataclass(frozen=True, slots=True)
class Asked:
    """A submission as it came in, and from whom."""

    submission: Submission
    body_digest: str
    idempotency_key: str | None = None
    priority: Priority = Priority.TRAINING
    client: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch has come: its ended items in order, and whether that is enough."""

    is_complete: bool
    ended: tuple[BatchItem, ...]


class Desk:
    """What HTTP asks of jobs."""

    def __init__(  # noqa: PLR0913, PLR0917 - one argument a collaborator
        self,
        store: Store,
        batches: Batches,
        registry: Registry,
        endings: Endings,
        admission: Admission,
        bounds: Bounds,
        worker: Worker | None = None,
    ) -> None:
        self._store = store
        self._batches = batches
        self._registry = registry
        self._endings = endings
        self.admission = admission
        self._bounds = bounds
        self.worker = worker

    async def submit(self, asked: Asked) -> Accepted:
        """Accept a submission and return its job; a known key joins the job it belongs to.

        What is known already costs no place, so that a retry finds its job in a full queue, too.

        Raises:
            RequestError: `unknown_task`, `invalid_request`, `conflict` or `overloaded`.
            InfrastructureError: `store_error`; whether it was accepted is not known then.
        """
        order = await self._order(asked)
        try:
            self.admission.admit(asked.client)
        except OverloadedError:
            known = await self._store.find(order)
            if known is None:
                raise
            return known
        worker = self.worker
        if worker is None or self.admission.queued > 1 or not worker.reserve():
            return await self._store.accept(order)
        return await self._lend(order, worker)

    async def _lend(self, order: Order, worker: Worker) -> Accepted:
        """Accept a job for a worker that has kept a place for it."""
        try:
            accepted = await self._store.accept(order, worker.claim)
        finally:
            worker.unreserve()
            self.admission.passed(order.client)
        if accepted.is_new:
            job = Claimed(
                accepted.job_id,
                accepted.attempt,
                order.submission,
                left_seconds=order.budget_seconds,
            )
            worker.start(job)
        return accepted

    async def submit_batch(
        self, asked: Sequence[Asked], min_complete: int, *, cancels_rest: bool
    ) -> tuple[UUID, list[UUID]]:
        """Accept all of a batch or nothing, and return its id and its jobs'.

        Raises:
            RequestError: as `submit`; the text names the item.
            InfrastructureError: `store_error`.
        """
        orders = []
        for index, one in enumerate(asked):
            try:
                orders.append(await self._order(one))
            except RequestError as error:
                raise RequestError(error.kind, f"items.{index}: {error.message}") from None
        self.admission.admit(asked[0].client, len(asked))
        return await self._batches.create(orders, min_complete, cancels_rest=cancels_rest)

    async def wait(self, job_id: UUID, seconds: float | None) -> StoredAnswer | JobState:
        """Wait for a job to end and return its answer, or its state if it has not ended.

        Raises:
            InfrastructureError: the job ended without a reward.
            RequestError: `not_found`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        here = None if self.worker is None else self.worker.result(job_id)
        if here is not None:
            await asyncio.wait({here}, timeout=seconds)
            if here.done() and not here.cancelled() and (answer := here.result()) is not None:
                return answer
        with self._endings.expect([job_id]) as expectation:
            while True:
                found = await self.look_up(job_id)
                left = None if deadline is None else deadline - time.monotonic()
                if not isinstance(found, JobState) or (left is not None and left <= 0):
                    return found
                await expectation.any(_POLL_SECONDS if left is None else min(left, _POLL_SECONDS))

    async def wait_for_any(
        self, job_ids: Sequence[UUID], seconds: float
    ) -> dict[UUID, StoredAnswer | InfrastructureError | RequestError]:
        """Wait until one of these jobs has ended, and return those that have, up to a few hundred.

        Raises:
            InfrastructureError: `store_error`.
        """
        deadline = time.monotonic() + seconds
        with self._endings.expect(job_ids) as expectation:
            while not (ended := await self._endings.among(job_ids)):
                if (left := deadline - time.monotonic()) <= 0:
                    break
                await expectation.any(min(left, _POLL_SECONDS))
        told = [job_id for job_id in dict.fromkeys(job_ids) if job_id in ended][:_MOST_TOLD]
        found = await self._store.answers(told)
        endings = {job_id: found.get(job_id) or await self._ending(job_id) for job_id in told}
        return {job_id: ending for job_id, ending in endings.items() if ending is not None}

    async def look_up(self, job_id: UUID) -> StoredAnswer | JobState:
        """Return the answer of a job, or its state if it has not ended.

        Raises:
            InfrastructureError: the job ended without a reward.
            RequestError: `not_found`.
        """
        stored = await self._store.answer(job_id)
        if stored is not None:
            return stored
        return _open_state(await self._store.job(job_id))

    async def _ending(self, job_id: UUID) -> InfrastructureError | RequestError | None:
        """Return how a job without an answer ended; None when it is being run again."""
        job = await self._store.job(job_id)
        try:
            _open_state(job)
        except (InfrastructureError, RequestError) as error:
            return error
        return None

    async def cancel(self, job_id: UUID) -> JobState:
        """End a job that nobody wants any more and return the state it is in now.

        Raises:
            RequestError: `not_found`.
        """
        if await self._store.cancel(job_id):
            self._endings.tell(job_id)
            if self.worker is not None:
                await self.worker.look_after(job_id)
            return JobState.CANCELLED
        job = await self._store.job(job_id)
        if job is None:
            message = "there is no such job"
            raise RequestError(ErrorKind.NOT_FOUND, message)
        return job.state

    async def follow(self, batch_id: UUID, seconds: float | None) -> AsyncIterator[Progress]:
        """Tell how far a batch has come, at once and at every end, until it is complete.

        Raises:
            RequestError: `not_found`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        batch = await self._batch(batch_id)
        with self._endings.expect({item.job_id for item in batch.items}) as expectation:
            while True:
                batch = await self._batch(batch_id)
                progress = _progress(batch)
                if progress.is_complete:
                    await self._batches.close(batch_id)
                yield progress
                left = None if deadline is None else deadline - time.monotonic()
                if progress.is_complete or (left is not None and left <= 0):
                    return
                await expectation.any(_POLL_SECONDS if left is None else min(left, _POLL_SECONDS))

    async def answers(self, job_ids: Sequence[UUID]) -> dict[UUID, StoredAnswer]:
        """Return the answers of these jobs, as far as they have one."""
        return await self._store.answers(job_ids)

    async def _batch(self, batch_id: UUID) -> BatchRow:
        batch = await self._batches.get(batch_id)
        if batch is None:
            message = "there is no such batch"
            raise RequestError(ErrorKind.NOT_FOUND, message)
        return batch

    async def _order(self, asked: Asked) -> Order:
        submission = asked.submission
        task = self._registry.get(submission.task_id)
        _check_wall(submission, task)
        parent = parse_parent_id(submission.parent_id)
        if parent is not None and not await self._store.has_solution(parent):
            message = "parent_id is not the id of a stored solution"
            raise RequestError(ErrorKind.INVALID_REQUEST, message)
        wall_seconds = submission.wall_seconds or task.card.wall_seconds
        return Order(
            submission=submission,
            body_digest=asked.body_digest,
            idempotency_key=asked.idempotency_key,
            priority=asked.priority,
            client=asked.client,
            budget_seconds=budget_seconds(self._bounds, wall_seconds),
        )


def _open_state(job: JobRow | None) -> JobState:
    """Return the state of a job that has no answer yet."""
    if job is None:
        message = "there is no such job"
        raise RequestError(ErrorKind.NOT_FOUND, message)
    if job.state is JobState.CANCELLED:
        message = "the job was cancelled"
        raise InfrastructureError(ErrorKind.CANCELLED, message)
    if job.error is not None:
        raise InfrastructureError(job.error.kind, job.error.message)
    return JobState.RUNNING if job.state.has_ended else job.state


def _progress(batch: BatchRow) -> Progress:
    ended = tuple(item for item in batch.items if item.state.has_ended)
    done = sum(item.state.has_answer for item in ended)
    is_complete = done >= batch.min_complete or len(ended) == len(batch.items)
    return Progress(is_complete, ended)


def _check_wall(submission: Submission, task: Task) -> None:
    asked, most = submission.wall_seconds, task.card.wall_seconds
    if asked is not None and asked > most:
        message = f"wall_seconds is above this task's limit of {most:g}"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)
