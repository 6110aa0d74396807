"""All that the rest of the server asks of the database.

A job ends once: `record` writes the result and closes the job in one statement that holds
only for the job's current attempt, so a worker that was given up cannot add a second result.
Every method is committed when it returns. The names of tables and columns stay in this room.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reward_server.errors import InfrastructureError, RequestError, boundary
from reward_server.model import ErrorKind
from reward_server.store import statements
from reward_server.store.paging import select_page, to_page
from reward_server.store.rows import (
    answer_of,
    job_parameters,
    outcome_parameters,
    placement_parameters,
    solution_parameters,
    storable,
    storable_or_none,
    to_answer,
    to_job,
    to_outcome,
    to_placement,
)
from reward_server.store.values import (
    Accepted,
    JobState,
    KeptReward,
    Relative,
    SolutionDetail,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from sqlalchemy import Executable, Row
    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.model import Placement, PlacementKey, Submission, Verdict
    from reward_server.store.paging import SolutionFilter
    from reward_server.store.values import JobRow, OutcomeFilter, Page, StoredAnswer, StoredOutcome

_DEEPEST_LINEAGE = 100
_MOST_CHILDREN = 500


class Store:
    """The jobs and solutions of one database.

    Every method raises InfrastructureError (`store_error`) when the database fails.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def ping(self) -> None:
        """Ask the database for a sign of life."""
        await self._rows(statements.PING)

    async def accept(
        self, submission: Submission, body_digest: str, idempotency_key: str | None = None
    ) -> Accepted:
        """Make a durable job, or join the one that has this key; an errored one is run again.

        Raises:
            RequestError: `conflict` when the key belongs to another body.
        """
        key = storable_or_none(idempotency_key)
        parameters = job_parameters(submission)
        parameters |= {"idempotency_key": key, "body_digest": body_digest}
        row = await self._row(statements.ACCEPT, parameters)
        if row is not None:
            return Accepted(row.id, is_new=True, state=JobState(row.state), attempt=row.attempt)
        existing = await self._one(statements.FIND_BY_KEY, {"key": key})
        if existing.body_digest != body_digest:
            message = "this idempotency key was used with another request"
            raise RequestError(ErrorKind.CONFLICT, message)
        state = JobState(existing.state)
        return Accepted(existing.id, is_new=False, state=state, attempt=existing.attempt)

    async def begin(self, job_id: UUID) -> int | None:
        """Take a job up again and return the attempt's number, or None when it has ended."""
        row = await self._row(statements.BEGIN, {"job_id": job_id})
        return None if row is None else int(row.attempt)

    async def retry(self, job_id: UUID, attempt: int) -> int | None:
        """Open the attempt after this one; None when this one is no longer the job's own."""
        row = await self._row(statements.RETRY, {"job_id": job_id, "attempt": attempt})
        return None if row is None else int(row.attempt)

    async def record(self, job_id: UUID, attempt: int, verdict: Verdict) -> StoredAnswer:
        """End a job with its one result and return it.

        A job that has a result keeps it: that one is returned, nothing changes.

        Raises:
            InfrastructureError: `cancelled`, or `worker_lost` when the attempt is not current.
        """
        parameters = solution_parameters(verdict) | {"job_id": job_id, "attempt": attempt}
        row = await self._row(statements.RECORD, parameters)
        if row is None:
            return await self._recorded(job_id)
        return answer_of(verdict, job_id, attempt, row.id, row.created_at)

    async def fail(self, job_id: UUID, attempt: int, kind: ErrorKind, message: str) -> bool:
        """End a job without a result; False when this attempt is no longer the job's own."""
        parameters: dict[str, Any] = {"job_id": job_id, "attempt": attempt}
        parameters |= {"kind": kind.value, "message": storable(message)}
        return await self._row(statements.FAIL, parameters) is not None

    async def cancel(self, job_id: UUID) -> bool:
        """End a job that nobody wants any more; False when it has already ended."""
        return await self._row(statements.CANCEL, {"job_id": job_id}) is not None

    async def job(self, job_id: UUID) -> JobRow | None:
        """Return a job in its present state."""
        row = await self._row(statements.JOB, {"job_id": job_id})
        return None if row is None else to_job(row)

    async def unfinished(self) -> list[JobRow]:
        """Return the jobs to resume after a restart, oldest first."""
        return [to_job(row) for row in await self._rows(statements.UNFINISHED)]

    async def answer(self, job_id: UUID) -> StoredAnswer | None:
        """Return the result of a job, once it has one."""
        row = await self._row(statements.ANSWER, {"job_id": job_id})
        return None if row is None else to_answer(row)

    async def has_solution(self, solution_id: UUID) -> bool:
        """Return whether a solution exists."""
        return await self._row(statements.HAS_SOLUTION, {"id": solution_id}) is not None

    async def solution(self, solution_id: UUID) -> SolutionDetail | None:
        """Return a solution with its lineage."""
        row = await self._row(statements.SOLUTION, {"id": solution_id})
        if row is None:
            return None
        depth = {"id": solution_id, "depth": _DEEPEST_LINEAGE}
        most = {"id": solution_id, "most": _MOST_CHILDREN}
        return SolutionDetail(
            answer=to_answer(row),
            ancestors=_relatives(await self._rows(statements.ANCESTORS, depth)),
            children=_relatives(await self._rows(statements.CHILDREN, most)),
            rewards=_rewards(await self._rows(statements.REWARDS, {"id": solution_id})),
        )

    async def solutions(self, wanted: SolutionFilter) -> Page:
        """Return one page of solutions.

        Raises:
            RequestError: `invalid_request` when the limit or the cursor is not a valid one.
        """
        return to_page(await self._rows(select_page(wanted)), wanted)

    async def count_outcomes(self, wanted: OutcomeFilter) -> int:
        """Return how many solutions there are to rescore."""
        row = await self._one(statements.COUNT_OUTCOMES, outcome_parameters(wanted))
        return int(row.number)

    async def outcomes(
        self, wanted: OutcomeFilter, after: StoredOutcome | None, most: int
    ) -> tuple[StoredOutcome, ...]:
        """Return what the next solutions' rewards are made of, the oldest first."""
        parameters = outcome_parameters(wanted) | {
            "after_id": None if after is None else after.solution_id,
            "after_time": None if after is None else after.created_at,
            "most": most,
        }
        return tuple(map(to_outcome, await self._rows(statements.OUTCOMES, parameters)))

    async def keep_rewards(self, scheme: str, version: int, values: Mapping[UUID, float]) -> None:
        """Keep what solutions earn under another scheme, all of them or none."""
        parameters = {"scheme": scheme, "scheme_version": version}
        listed = {"solution_ids": list(values), "values": list(values.values())}
        await self._rows(statements.KEEP_REWARDS, parameters | listed)

    async def placement(self, key: PlacementKey) -> Placement | None:
        """Return what a language model said of a program before."""
        row = await self._row(statements.PLACEMENT, asdict(key))
        return None if row is None else to_placement(row)

    async def keep_placement(self, key: PlacementKey, placement: Placement) -> None:
        """Keep what a language model said of a program; what is there already stays."""
        parameters = placement_parameters(placement) | asdict(key)
        await self._row(statements.KEEP_PLACEMENT, parameters)

    async def _recorded(self, job_id: UUID) -> StoredAnswer:
        answer = await self.answer(job_id)
        if answer is not None:
            return answer
        job = await self.job(job_id)
        if job is not None and job.state is JobState.CANCELLED:
            raise InfrastructureError(ErrorKind.CANCELLED, "the job was cancelled")
        message = "this attempt was given up; its result does not count"
        raise InfrastructureError(ErrorKind.WORKER_LOST, message)

    async def _rows(
        self, statement: Executable, parameters: dict[str, Any] | None = None
    ) -> Sequence[Row[Any]]:
        with boundary(ErrorKind.STORE_ERROR, "store"):
            async with self._engine.connect() as connection:
                return (await connection.execute(statement, parameters)).all()

    async def _row(self, statement: Executable, parameters: dict[str, Any]) -> Row[Any] | None:
        rows = await self._rows(statement, parameters)
        return rows[0] if rows else None

    async def _one(self, statement: Executable, parameters: dict[str, Any]) -> Row[Any]:
        row = await self._row(statement, parameters)
        if row is None:
            raise InfrastructureError(ErrorKind.STORE_ERROR, "a stored job has disappeared")
        return row


def _rewards(rows: Sequence[Row[Any]]) -> tuple[KeptReward, ...]:
    return tuple(
        KeptReward(row.scheme, row.scheme_version, row.value, row.created_at) for row in rows
    )


def _relatives(rows: Sequence[Row[Any]]) -> tuple[Relative, ...]:
    return tuple(Relative(row.id, row.reward) for row in rows)
