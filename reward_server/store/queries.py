"""Reads and writes of jobs and solutions, for the rest of the server.

A job ends once: `record` writes the result and closes the job in one statement that matches only
the job's current attempt, so a worker that lost its lease cannot add a second result. Every method
is committed when it returns. Only this package knows the names of tables and columns.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reward_server.errors import InfrastructureError, RequestError
from reward_server.model import ErrorKind
from reward_server.store import job_statements
from reward_server.store.database import Database
from reward_server.store.rows import (
    failure_of,
    order_parameters,
    outcome_parameters,
    placement_parameters,
    read,
    solution_parameters,
    storable,
    storable_or_none,
    to_answer,
    to_job,
    to_outcome,
    to_placement,
)
from reward_server.store.solutions.paging import select_page, to_page
from reward_server.store.values import (
    Accepted,
    JobState,
    JobStatus,
    KeptReward,
    Relative,
    SolutionDetail,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from sqlalchemy import Row

    from reward_server.model import Box, MarkerPlacement, MarkerPlacementKey, Submission, Verdict
    from reward_server.store.solutions.paging import SolutionFilter
    from reward_server.store.values import (
        JobRow,
        LeaseRequest,
        NewJob,
        OutcomeFilter,
        Page,
        StoredAnswer,
        StoredOutcome,
    )

_DEEPEST_LINEAGE = 100
_MOST_CHILDREN = 500


class Store(Database):
    """The jobs and solutions of one database.

    Every method raises InfrastructureError (`store_error`) when the database fails.
    """

    async def ping(self) -> None:
        """Check that the database answers."""
        await self.rows(job_statements.PING)

    async def accept(self, order: NewJob, claim: LeaseRequest | None = None) -> Accepted:
        """Create a durable job, or join the one with this key; an errored one is run again.

        With a claim the job skips the queue: that worker leases it at once.

        Raises:
            RequestError: `conflict` when the key belongs to another body.
        """
        row = await self.row(job_statements.ACCEPT, order_parameters(order, claim))
        if row is not None:
            return Accepted(row.id, is_new=True, state=JobState(row.state), attempt=row.attempt)
        key = storable_or_none(order.idempotency_key)
        return _join(order, await self.one(job_statements.FIND_BY_KEY, {"key": key}))

    async def find(self, order: NewJob) -> Accepted | None:
        """Return the job with this key, unless it would have to be run again.

        Raises:
            RequestError: `conflict` when the key belongs to another body.
        """
        if order.idempotency_key is None:
            return None
        key = storable(order.idempotency_key)
        row = await self.row(job_statements.FIND_BY_KEY, {"key": key})
        joined = None if row is None else _join(order, row)
        runs_again = joined is None or (joined.state.has_ended and not joined.state.has_answer)
        return None if runs_again else joined

    async def record(self, job_id: UUID, attempt: int, verdict: Verdict) -> StoredAnswer:
        """End a job with its one result and return it.

        A job that has a result keeps it: that one is returned, nothing changes.

        Raises:
            InfrastructureError: `cancelled`, or `worker_lost` when the attempt is not current.
        """
        parameters = solution_parameters(verdict) | {"job_id": job_id, "attempt": attempt}
        row = await self.row(job_statements.RECORD, parameters)
        if row is None:
            return await self._recorded(job_id)
        return to_answer(parameters | row._asdict())

    async def cancel(self, job_id: UUID) -> bool:
        """Cancel a job; False if it has already ended."""
        return await self.row(job_statements.CANCEL, {"job_id": job_id}) is not None

    async def cancel_steps(self, run_id: str, up_to_step: int, client: str) -> list[UUID]:
        """Cancel the unfinished jobs of a client's run up to a step, and return their ids.

        Jobs without a step are not cancelled.
        """
        unwanted = {"run_id": storable(run_id), "up_to_step": up_to_step, "client": client}
        return [row.id for row in await self.rows(job_statements.CANCEL_STEPS, unwanted)]

    async def job(self, job_id: UUID) -> JobRow | None:
        """Return a job in its present state."""
        row = await self.row(job_statements.JOB, {"job_id": job_id})
        return None if row is None else to_job(row)

    async def status(self, job_id: UUID) -> JobStatus | None:
        """Return the state of a job, without its texts."""
        row = await self.row(job_statements.STANDING, {"job_id": job_id})
        return None if row is None else JobStatus(JobState(row.state), failure_of(row))

    async def answer(self, job_id: UUID) -> StoredAnswer | None:
        """Return the result of a job, once it has one."""
        row = await self.row(job_statements.ANSWER, {"job_id": job_id})
        return None if row is None else to_answer(row._asdict())

    async def answers(self, job_ids: Sequence[UUID]) -> dict[UUID, StoredAnswer]:
        """Return the results of those of these jobs that have one."""
        rows = await self.rows(job_statements.ANSWERS, {"job_ids": list(job_ids)})
        return {row.job_id: to_answer(row._asdict()) for row in rows}

    async def find_identical(
        self, program_digest: str, submission: Submission, data_digest: str, box: Box
    ) -> StoredAnswer | None:
        """Return a measured verdict on the same program, run and data, if there is one."""
        parameters = {
            "program_digest": program_digest,
            "run_id": storable(submission.run_id),
            "task_id": storable(submission.task_id),
            "data_digest": data_digest,
            "sandbox_kind": box.kind,
            "sandbox_image": box.image,
        }
        row = await self.row(job_statements.TWIN, parameters)
        return None if row is None else to_answer(row._asdict())

    async def known_solutions(self, solution_ids: Collection[UUID]) -> set[UUID]:
        """Return which of these solutions exist."""
        rows = await self.rows(job_statements.KNOWN_SOLUTIONS, {"ids": list(solution_ids)})
        return {row.id for row in rows}

    async def solution(self, solution_id: UUID) -> SolutionDetail | None:
        """Return a solution with its ancestors, children and rewards."""
        row = await self.row(job_statements.SOLUTION, {"id": solution_id})
        if row is None:
            return None
        depth = {"id": solution_id, "depth": _DEEPEST_LINEAGE}
        most = {"id": solution_id, "most": _MOST_CHILDREN}
        rewards = await self.rows(job_statements.REWARDS, {"id": solution_id})
        return SolutionDetail(
            answer=to_answer(row._asdict()),
            ancestors=_relatives(await self.rows(job_statements.ANCESTORS, depth)),
            children=_relatives(await self.rows(job_statements.CHILDREN, most)),
            rewards=tuple(read(KeptReward, row) for row in rewards),
        )

    async def solutions(self, wanted: SolutionFilter) -> Page:
        """Return one page of solutions.

        Raises:
            RequestError: `invalid_request` when the limit or the cursor is not a valid one.
        """
        return to_page(await self.rows(select_page(wanted)), wanted)

    async def count_outcomes(self, wanted: OutcomeFilter) -> int:
        """Return how many solutions there are to rescore."""
        row = await self.one(job_statements.COUNT_OUTCOMES, outcome_parameters(wanted))
        return int(row.number)

    async def outcomes(
        self, wanted: OutcomeFilter, after: StoredOutcome | None, most: int
    ) -> tuple[StoredOutcome, ...]:
        """Return the next solutions with all that a reward depends on, the oldest first."""
        parameters = outcome_parameters(wanted) | {
            "after_id": None if after is None else after.solution_id,
            "after_time": None if after is None else after.created_at,
            "most": most,
        }
        return tuple(map(to_outcome, await self.rows(job_statements.OUTCOMES, parameters)))

    async def keep_rewards(self, scheme: str, version: int, values: Mapping[UUID, float]) -> None:
        """Store rewards under another scheme, all of them or none."""
        parameters = {"scheme": scheme, "scheme_version": version}
        listed = {"solution_ids": list(values), "values": list(values.values())}
        await self.rows(job_statements.KEEP_REWARDS, parameters | listed)

    async def placement(self, key: MarkerPlacementKey) -> MarkerPlacement | None:
        """Return the markers that a language model placed in a program before."""
        row = await self.row(job_statements.PLACEMENT, asdict(key))
        return None if row is None else to_placement(row)

    async def keep_placement(self, key: MarkerPlacementKey, placement: MarkerPlacement) -> None:
        """Store the markers that a language model placed; existing ones stay."""
        parameters = placement_parameters(placement) | asdict(key)
        await self.row(job_statements.KEEP_PLACEMENT, parameters)

    async def _recorded(self, job_id: UUID) -> StoredAnswer:
        answer = await self.answer(job_id)
        if answer is not None:
            return answer
        job = await self.job(job_id)
        if job is not None and job.state is JobState.CANCELLED:
            raise InfrastructureError(ErrorKind.CANCELLED, "the job was cancelled")
        message = "this attempt was given up; its result does not count"
        raise InfrastructureError(ErrorKind.WORKER_LOST, message)


def _join(order: NewJob, existing: Row[Any]) -> Accepted:
    if existing.body_digest != order.body_digest:
        message = "this idempotency key was used with another request"
        raise RequestError(ErrorKind.CONFLICT, message)
    state = JobState(existing.state)
    return Accepted(existing.id, is_new=False, state=state, attempt=existing.attempt)


def _relatives(rows: Sequence[Row[Any]]) -> tuple[Relative, ...]:
    return tuple(Relative(row.id, row.reward) for row in rows)
