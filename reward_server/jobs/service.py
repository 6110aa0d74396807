"""The job service: accepts jobs, waits for them, cancels them.

Accepted means committed: a job that has an id runs to its end even if the client hangs up or this
process dies. If nothing waits and this process's worker has a free slot, a job skips the queue: the
statement that accepts it also leases it to that worker.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, QueueFullError, RequestError
from reward_server.jobs.batch_progress import BatchProgress, follow
from reward_server.jobs.deadlines import budget_seconds
from reward_server.model import ErrorKind
from reward_server.store.rows import parse_parent_id
from reward_server.store.values import JobState, LeasedJob

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
    from reward_server.store.values import Accepted, BatchRow, JobStatus, NewJob, StoredAnswer
    from reward_server.tasks.base import Task
    from reward_server.tasks.registry import Registry

_MOST_REPORTED = 256
_NO_JOB = "no job has this id"
_NO_PARENT = "parent_id is not the id of a stored solution"


class JobService:
    """What the API needs of jobs."""

    def __init__(  # noqa: PLR0913, PLR0917 - one argument a collaborator
        self,
        store: Store,
        batches: Batches,
        registry: Registry,
        notifier: CompletionNotifier,
        admission: Admission,
        deadlines: DeadlineConfig,
        worker: Worker | None = None,
    ) -> None:
        self._store = store
        self._batches = batches
        self._registry = registry
        self._notifier = notifier
        self.admission = admission
        self._deadlines = deadlines
        self.worker = worker

    async def submit(self, new: NewJob) -> Accepted:
        """Accept a job; an idempotency key that is known returns the job it belongs to.

        A known job takes no place in the queue, so a retry finds its job even if the queue is full.

        Raises:
            RequestError: `unknown_task`, `invalid_request`, `conflict` or `overloaded`.
            InfrastructureError: `store_error`; the job may or may not be accepted then.
        """
        self._refuse_if_stopping()
        job = self._check(new)
        if await self._find_unknown_parent([job]) is not None:
            raise RequestError(ErrorKind.INVALID_REQUEST, _NO_PARENT)
        try:
            self.admission.admit(job.client, ticket=job.body_digest)
        except QueueFullError:
            known = await self._store.find(job)
            if known is None:
                raise
            return known
        worker = self.worker
        if worker is None or self.admission.queued > 1 or not worker.can_lease_at_once:
            with self.admission.inserting(job.client):
                return await self._store.accept(job)
        return await self._accept_and_lease(job, worker)

    async def _accept_and_lease(self, job: NewJob, worker: Worker) -> Accepted:
        """Accept a job that this process's worker starts at once, in one statement."""
        self.admission.skip_queue(job.client)
        with worker.lease_window() as leased:
            accepted = await self._store.accept(job, worker.lease_request)
            if accepted.is_new:
                job_id, attempt, seconds = accepted.job_id, accepted.attempt, job.budget_seconds
                leased.append(LeasedJob(job_id, attempt, job.submission, left_seconds=seconds))
        return accepted

    async def submit_batch(
        self, new: Sequence[NewJob], min_complete: int, *, cancels_rest: bool
    ) -> tuple[UUID, list[UUID]]:
        """Accept all jobs of a batch or none, and return its id and theirs.

        Raises:
            RequestError: as `submit`; the text names the item.
            InfrastructureError: `store_error`.
        """
        self._refuse_if_stopping()
        jobs = self._check_all(new)
        unknown = await self._find_unknown_parent(jobs)
        if unknown is not None:
            raise RequestError(ErrorKind.INVALID_REQUEST, f"items.{unknown}: {_NO_PARENT}")
        client = jobs[0].client
        try:
            ticket = f"{len(jobs)} from {jobs[0].body_digest}"
            self.admission.admit(client, len(jobs), ticket)
        except QueueFullError:
            if await self._batches.count_new(jobs):
                raise
        with self.admission.inserting(client, len(jobs)):
            return await self._batches.create(jobs, min_complete, cancels_rest=cancels_rest)

    async def wait(
        self, job_id: UUID, seconds: float | None, *, is_fresh: bool = False
    ) -> StoredAnswer | JobState:
        """Wait for a job to end and return its answer, or its state if it has not ended.

        A fresh job, just accepted, is not looked up if this process's worker runs it.

        Raises:
            InfrastructureError: the job ended without a reward.
            RequestError: `not_found`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._notifier.subscribe([job_id]) as subscription:
            is_here = is_fresh and self.worker is not None and self.worker.runs(job_id)
            found = JobState.RUNNING if is_here else await self.look_up(job_id)
            while isinstance(found, JobState):
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                completions = await subscription.wait(left)
                if not completions and self.is_stopping:
                    break
                found = completions.get(job_id) or await self.look_up(job_id)
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
        with self._notifier.subscribe(job_ids) as subscription:
            ended = await self._notifier.find_ended(job_ids)
            while not ended and (left := deadline - time.monotonic()) > 0:
                completions = await subscription.wait(left)
                if not completions and self.is_stopping:
                    break
                known = {job_id: answer for job_id, answer in completions.items() if answer}
                ended = set(known) or await self._notifier.find_ended(completions)
        reported = [one for one in dict.fromkeys(job_ids) if one in ended][:_MOST_REPORTED]
        found = known or await self._store.answers(reported)
        outcomes = {job_id: found.get(job_id) or await self._outcome(job_id) for job_id in reported}
        return {job_id: outcome for job_id, outcome in outcomes.items() if outcome is not None}

    async def look_up(self, job_id: UUID) -> StoredAnswer | JobState:
        """Return the answer of a job, or its state if it has not ended.

        Raises:
            InfrastructureError: the job ended without a reward.
            RequestError: `not_found`.
        """
        state = _state_of(await self._store.status(job_id))
        if not state.has_answer:
            return state
        return await self._store.answer(job_id) or JobState.RUNNING

    async def _outcome(
        self, job_id: UUID
    ) -> StoredAnswer | InfrastructureError | RequestError | None:
        """Return how a job ended; None when it is being run again.

        Raises:
            InfrastructureError: `store_error`; the job's own error is returned.
        """
        status = await self._store.status(job_id)
        try:
            state = _state_of(status)
        except (InfrastructureError, RequestError) as error:
            return error
        return await self._store.answer(job_id) if state.has_answer else None

    async def cancel(self, job_id: UUID) -> JobState:
        """Cancel a job that has not ended, and return the state it is in now.

        Raises:
            RequestError: `not_found`.
        """
        if await self._store.cancel(job_id):
            self._notifier.notify(job_id)
            if self.worker is not None:
                await self.worker.revoke_if_lost(job_id)
            return JobState.CANCELLED
        status = await self._store.status(job_id)
        if status is None:
            raise RequestError(ErrorKind.NOT_FOUND, _NO_JOB)
        return status.state

    async def cancel_steps(self, run_id: str, up_to_step: int, client: str) -> int:
        """Cancel a client's unfinished jobs of a run up to a step, and return how many.

        Raises:
            InfrastructureError: `store_error`.
        """
        ended = await self._store.cancel_steps(run_id, up_to_step, client)
        for job_id in ended:
            self._notifier.notify(job_id)
        if self.worker is not None:
            await self.worker.revoke_if_lost(*ended)
        return len(ended)

    async def stop(self) -> None:
        """Refuse new jobs, end all waits early, and let running jobs finish for a while."""
        self._notifier.stop()
        if self.worker is not None:
            await self.worker.drain()
        self._notifier.stop()

    @property
    def is_stopping(self) -> bool:
        """Return whether new jobs are refused."""
        return self._notifier.is_stopping

    def _refuse_if_stopping(self) -> None:
        if self.is_stopping:
            message = "the server is stopping; try again later"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)

    async def follow(self, batch_id: UUID, seconds: float | None) -> AsyncIterator[BatchProgress]:
        """Report how far a batch has come: at once, at every end and every few seconds.

        Raises:
            RequestError: `not_found`.
        """
        batch = await self._batch(batch_id)
        async for progress in follow(self._batches, self._notifier, batch, seconds):
            yield progress

    async def wait_for_batch(self, batch_id: UUID, seconds: float) -> BatchProgress:
        """Wait until a batch is complete, and return all its items that have ended, in order.

        Raises:
            RequestError: `not_found`.
        """
        is_complete = False
        async for progress in self.follow(batch_id, seconds):
            is_complete = progress.is_complete
        batch = await self._batch(batch_id)
        return BatchProgress(is_complete, tuple(i for i in batch.items if i.state.has_ended), {})

    async def answers(self, job_ids: Sequence[UUID]) -> dict[UUID, StoredAnswer]:
        """Return the answers of those of these jobs that have one."""
        return await self._store.answers(job_ids)

    async def _batch(self, batch_id: UUID) -> BatchRow:
        batch = await self._batches.get(batch_id)
        if batch is None:
            message = "no batch has this id"
            raise RequestError(ErrorKind.NOT_FOUND, message)
        return batch

    def _check_all(self, new: Sequence[NewJob]) -> list[NewJob]:
        """Check the jobs of a batch; the text of an error names the item."""
        jobs = []
        for index, one in enumerate(new):
            try:
                jobs.append(self._check(one))
            except RequestError as error:
                raise RequestError(error.kind, f"items.{index}: {error.message}") from None
        return jobs

    def _check(self, new: NewJob) -> NewJob:
        """Return a job that can be served, with the time it may take."""
        submission = new.submission
        task = self._registry.get(submission.task_id)
        _check_wall(submission, task)
        parse_parent_id(submission.parent_id)
        wall_seconds = submission.wall_seconds or task.card.wall_seconds
        return replace(new, budget_seconds=budget_seconds(self._deadlines, wall_seconds))

    async def _find_unknown_parent(self, jobs: Sequence[NewJob]) -> int | None:
        """Return the index of the first job whose parent is not in the store."""
        parents = [parse_parent_id(job.submission.parent_id) for job in jobs]
        named = {parent for parent in parents if parent is not None}
        unknown = named - await self._store.known_solutions(named) if named else set()
        return next((i for i, parent in enumerate(parents) if parent in unknown), None)


def _state_of(status: JobStatus | None) -> JobState:
    """Return the state of a job that has not ended without a reward."""
    if status is None:
        raise RequestError(ErrorKind.NOT_FOUND, _NO_JOB)
    if status.state is JobState.CANCELLED:
        message = "the job was cancelled"
        raise InfrastructureError(ErrorKind.CANCELLED, message)
    if status.error is not None:
        raise InfrastructureError(status.error.kind, status.error.message)
    return status.state


def _check_wall(submission: Submission, task: Task) -> None:
    wanted, most = submission.wall_seconds, task.card.wall_seconds
    if wanted is not None and wanted > most:
        message = f"wall_seconds is above this task's limit of {most:g}"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)
