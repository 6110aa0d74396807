"""The front desk: takes submissions in, tells how they ended, cancels them.

Accepted means committed: what has an id here goes on whoever hangs up or dies. Where a worker of
this process has a place and nothing else waits, a job is lent to it as it is accepted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, OverloadedError, RequestError
from reward_server.jobs.batch_progress import BatchProgress, follow
from reward_server.jobs.deadlines import budget_seconds
from reward_server.model import ErrorKind, Priority
from reward_server.store.rows import parse_parent_id
from reward_server.store.values import JobState, LeasedJob, NewJob

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

    from reward_server.jobs.admission import Admission
    from reward_server.jobs.deadlines import DeadlineConfig
    from reward_server.jobs.notifier import CompletionNotifier
    from reward_server.jobs.workers.worker import Worker
    from reward_server.model import Submission
    from reward_server.store.batches import Batches
    from reward_server.store.queries import Store
    from reward_server.store.values import Accepted, BatchRow, JobStatus, StoredAnswer
    from reward_server.tasks.base import Task
    from reward_server.tasks.registry import Registry

_MOST_TOLD = 256
_NO_JOB = "there is no such job"
_NO_PARENT = "parent_id is not the id of a stored solution"


@dataclass(frozen=True, slots=True)
class JobSubmission:
    """A submission as it came in, and from whom."""

    submission: Submission
    body_digest: str
    idempotency_key: str | None = None
    priority: Priority = Priority.TRAINING
    client: str = ""


class JobService:
    """What HTTP asks of jobs."""

    def __init__(  # noqa: PLR0913, PLR0917 - one argument a collaborator
        self,
        store: Store,
        batches: Batches,
        registry: Registry,
        endings: CompletionNotifier,
        admission: Admission,
        bounds: DeadlineConfig,
        worker: Worker | None = None,
    ) -> None:
        self._store = store
        self._batches = batches
        self._registry = registry
        self._endings = endings
        self.admission = admission
        self._bounds = bounds
        self.worker = worker

    async def submit(self, asked: JobSubmission) -> Accepted:
        """Accept a submission and return its job; a known key joins the job it belongs to.

        What is known already costs no place, so that a retry finds its job in a full queue, too.

        Raises:
            RequestError: `unknown_task`, `invalid_request`, `conflict` or `overloaded`.
            InfrastructureError: `store_error`; whether it was accepted is not known then.
        """
        self._refuse_if_stopping()
        order = self._order(asked)
        if await self._with_unknown_parent([asked]) is not None:
            raise RequestError(ErrorKind.INVALID_REQUEST, _NO_PARENT)
        try:
            self.admission.admit(asked.client, ticket=asked.body_digest)
        except OverloadedError:
            known = await self._store.find(order)
            if known is None:
                raise
            return known
        worker = self.worker
        if worker is None or self.admission.queued > 1 or not worker.reserve():
            return await self._store.accept(order)
        return await self._lend(order, worker)

    async def _lend(self, order: NewJob, worker: Worker) -> Accepted:
        """Accept a job for a worker that has kept a place for it."""
        try:
            accepted = await self._store.accept(order, worker.claim)
        finally:
            worker.unreserve()
            self.admission.passed(order.client)
        if accepted.is_new:
            job = LeasedJob(
                accepted.job_id,
                accepted.attempt,
                order.submission,
                left_seconds=order.budget_seconds,
            )
            worker.start(job)
        return accepted

    async def submit_batch(
        self, asked: Sequence[JobSubmission], min_complete: int, *, cancels_rest: bool
    ) -> tuple[UUID, list[UUID]]:
        """Accept all of a batch or nothing, and return its id and its jobs'.

        Raises:
            RequestError: as `submit`; the text names the item.
            InfrastructureError: `store_error`.
        """
        self._refuse_if_stopping()
        orders = self._orders(asked)
        unknown = await self._with_unknown_parent(asked)
        if unknown is not None:
            raise RequestError(ErrorKind.INVALID_REQUEST, f"items.{unknown}: {_NO_PARENT}")
        try:
            ticket = f"{len(asked)} from {asked[0].body_digest}"
            self.admission.admit(asked[0].client, len(asked), ticket)
        except OverloadedError:
            if await self._batches.count_new(orders):
                raise
        return await self._batches.create(orders, min_complete, cancels_rest=cancels_rest)

    async def wait(
        self, job_id: UUID, seconds: float | None, *, is_fresh: bool = False
    ) -> StoredAnswer | JobState:
        """Wait for a job to end and return its answer, or its state if it has not ended.

        A fresh one, just accepted, need not be looked up where it is at work here.

        Raises:
            InfrastructureError: the job ended without a reward.
            RequestError: `not_found`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._endings.expect([job_id]) as expectation:
            is_here = is_fresh and self.worker is not None and self.worker.runs(job_id)
            found = JobState.RUNNING if is_here else await self.look_up(job_id)
            while isinstance(found, JobState):
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                told = await expectation.any(left)
                if not told and self.is_stopping:
                    break
                found = told.get(job_id) or await self.look_up(job_id)
        return found

    async def wait_for_any(
        self, job_ids: Sequence[UUID], seconds: float
    ) -> dict[UUID, StoredAnswer | InfrastructureError | RequestError]:
        """Wait until one of these jobs has ended, and return those that have, up to a few hundred.

        Raises:
            InfrastructureError: `store_error`.
        """
        deadline = time.monotonic() + seconds
        known: dict[UUID, StoredAnswer] = {}
        with self._endings.expect(job_ids) as expectation:
            ended = await self._endings.among(job_ids)
            while not ended and (left := deadline - time.monotonic()) > 0:
                told = await expectation.any(left)
                if not told and self.is_stopping:
                    break
                known = {job_id: answer for job_id, answer in told.items() if answer is not None}
                ended = set(known) or await self._endings.among(told)
        told_of = [job_id for job_id in dict.fromkeys(job_ids) if job_id in ended][:_MOST_TOLD]
        found = known or await self._store.answers(told_of)
        endings = {job_id: found.get(job_id) or await self._ending(job_id) for job_id in told_of}
        return {job_id: ending for job_id, ending in endings.items() if ending is not None}

    async def look_up(self, job_id: UUID) -> StoredAnswer | JobState:
        """Return the answer of a job, or its state if it has not ended.

        Raises:
            InfrastructureError: the job ended without a reward.
            RequestError: `not_found`.
        """
        state = _state_of(await self._store.standing(job_id))
        if not state.has_answer:
            return state
        return await self._store.answer(job_id) or JobState.RUNNING

    async def _ending(
        self, job_id: UUID
    ) -> StoredAnswer | InfrastructureError | RequestError | None:
        """Return how a job ended; None when it is being run again.

        Raises:
            InfrastructureError: `store_error`, which is no job's ending.
        """
        standing = await self._store.standing(job_id)
        try:
            state = _state_of(standing)
        except (InfrastructureError, RequestError) as error:
            return error
        return await self._store.answer(job_id) if state.has_answer else None

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
        standing = await self._store.standing(job_id)
        if standing is None:
            raise RequestError(ErrorKind.NOT_FOUND, _NO_JOB)
        return standing.state

    async def cancel_steps(self, run_id: str, up_to_step: int, client: str) -> int:
        """End what has not ended of a client's run up to a step, and return how many jobs.

        Raises:
            InfrastructureError: `store_error`.
        """
        ended = await self._store.cancel_steps(run_id, up_to_step, client)
        for job_id in ended:
            self._endings.tell(job_id)
        if self.worker is not None:
            await self.worker.look_after(*ended)
        return len(ended)

    async def stop(self) -> None:
        """Take nothing more in, let go of all who wait, and let what runs come to its end."""
        self._endings.stop()
        if self.worker is not None:
            await self.worker.drain()
        self._endings.stop()

    @property
    def is_stopping(self) -> bool:
        """Return whether nothing more is taken in."""
        return self._endings.is_stopping

    def _refuse_if_stopping(self) -> None:
        if self.is_stopping:
            message = "the server is being stopped; try again later"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)

    async def follow(self, batch_id: UUID, seconds: float | None) -> AsyncIterator[BatchProgress]:
        """Tell how far a batch has come, at once, at every end and now and then.

        Raises:
            RequestError: `not_found`.
        """
        batch = await self._batch(batch_id)
        async for progress in follow(self._batches, self._endings, batch, seconds):
            yield progress

    async def wait_for_batch(self, batch_id: UUID, seconds: float) -> BatchProgress:
        """Wait until a batch is complete, and return all of it that has ended, in order.

        Raises:
            RequestError: `not_found`.
        """
        is_complete = False
        async for progress in self.follow(batch_id, seconds):
            is_complete = progress.is_complete
        batch = await self._batch(batch_id)
        return BatchProgress(is_complete, tuple(i for i in batch.items if i.state.has_ended), {})

    async def answers(self, job_ids: Sequence[UUID]) -> dict[UUID, StoredAnswer]:
        """Return the answers of these jobs, as far as they have one."""
        return await self._store.answers(job_ids)

    async def _batch(self, batch_id: UUID) -> BatchRow:
        batch = await self._batches.get(batch_id)
        if batch is None:
            message = "there is no such batch"
            raise RequestError(ErrorKind.NOT_FOUND, message)
        return batch

    def _orders(self, asked: Sequence[JobSubmission]) -> list[NewJob]:
        """Check the items of a batch; the text of an error names the item."""
        orders = []
        for index, one in enumerate(asked):
            try:
                orders.append(self._order(one))
            except RequestError as error:
                raise RequestError(error.kind, f"items.{index}: {error.message}") from None
        return orders

    def _order(self, asked: JobSubmission) -> NewJob:
        submission = asked.submission
        task = self._registry.get(submission.task_id)
        _check_wall(submission, task)
        parse_parent_id(submission.parent_id)
        wall_seconds = submission.wall_seconds or task.card.wall_seconds
        return NewJob(
            submission=submission,
            body_digest=asked.body_digest,
            idempotency_key=asked.idempotency_key,
            priority=asked.priority,
            client=asked.client,
            budget_seconds=budget_seconds(self._bounds, wall_seconds),
        )

    async def _with_unknown_parent(self, asked: Sequence[JobSubmission]) -> int | None:
        """Return the first whose parent is not in the store, all being asked for at once."""
        parents = [parse_parent_id(one.submission.parent_id) for one in asked]
        named = {parent for parent in parents if parent is not None}
        unknown = named - await self._store.known_solutions(named) if named else set()
        return next((i for i, parent in enumerate(parents) if parent in unknown), None)


def _state_of(standing: JobStatus | None) -> JobState:
    """Return the state of a job that has not ended without a reward."""
    if standing is None:
        raise RequestError(ErrorKind.NOT_FOUND, _NO_JOB)
    if standing.state is JobState.CANCELLED:
        message = "the job was cancelled"
        raise InfrastructureError(ErrorKind.CANCELLED, message)
    if standing.error is not None:
        raise InfrastructureError(standing.error.kind, standing.error.message)
    return standing.state


def _check_wall(submission: Submission, task: Task) -> None:
    asked, most = submission.wall_seconds, task.card.wall_seconds
    if asked is not None and asked > most:
        message = f"wall_seconds is above this task's limit of {most:g}"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)
