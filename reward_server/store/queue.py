"""The queue as workers see it: jobs are lent out, held, given back and taken away.

Every method is one statement, committed when it returns, and raises InfrastructureError
(`store_error`) when the database fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.store import queue_statements as statements
from reward_server.store.database import Database
from reward_server.store.rows import storable, to_claimed, to_submission
from reward_server.store.values import QueueState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

    from reward_server.model import ErrorKind, Submission
    from reward_server.store.values import LeasedJob, LeaseRequest


class Queue(Database):
    """The jobs of one database that have not ended."""

    async def claim(
        self, claim: LeaseRequest, most: int, task_ids: Iterable[str]
    ) -> list[LeasedJob]:
        """Borrow up to so many jobs of these tasks: urgent ones first, runs in turn."""
        parameters = {
            "worker": claim.worker,
            "lease_seconds": claim.lease_seconds,
            "most": most,
            "task_ids": list(task_ids),
        }
        rows = await self.rows(statements.CLAIM, parameters)
        return [to_claimed(row) for row in rows]

    async def peek(self, most: int) -> list[UUID]:
        """Return which jobs wait longest, without borrowing them."""
        return [row.id for row in await self.rows(statements.PEEK, {"most": most})]

    async def submissions(self, job_ids: Collection[UUID]) -> list[Submission]:
        """Return what these jobs are about."""
        rows = await self.rows(statements.SUBMISSIONS, {"job_ids": list(job_ids)})
        return [to_submission(row) for row in rows]

    async def renew(self, claim: LeaseRequest, job_ids: Collection[UUID]) -> dict[UUID, int]:
        """Extend the leases of these jobs and return those that are still the worker's."""
        parameters = {
            "worker": claim.worker,
            "lease_seconds": claim.lease_seconds,
            "job_ids": list(job_ids),
        }
        return {row.id: row.attempt for row in await self.rows(statements.RENEW, parameters)}

    async def retry(
        self,
        job_id: UUID,
        attempt: int,
        max_attempts: int,
        pause_seconds: float,
        *,
        is_fault: bool = True,
    ) -> bool:
        """Let a job wait for another attempt; False when it has had enough of them, or of time.

        An attempt that could not even begin is no fault and is not counted.
        """
        parameters = {
            "fault": int(is_fault),
            "job_id": job_id,
            "attempt": attempt,
            "max_attempts": max_attempts,
            "pause_seconds": pause_seconds,
        }
        return await self.row(statements.RETRY, parameters) is not None

    async def fail(self, job_id: UUID, attempt: int, kind: ErrorKind, message: str) -> bool:
        """End a job without a result; False when this attempt is no longer the job's own."""
        parameters = {
            "job_id": job_id,
            "attempt": attempt,
            "kind": kind.value,
            "message": storable(message),
        }
        return await self.row(statements.FAIL, parameters) is not None

    async def release(self, worker: UUID) -> int:
        """Give back all that a worker has borrowed; no attempt is spoilt by that."""
        return len(await self.rows(statements.RELEASE, {"worker": worker}))

    async def expire(self, max_attempts: int, dead: Collection[UUID] = ()) -> int:
        """Take jobs away from workers that are late or known to be dead."""
        parameters = {"max_attempts": max_attempts, "dead": list(dead)}
        return len(await self.rows(statements.EXPIRE, parameters))

    async def give_up(self, queue_seconds: float) -> int:
        """End what has waited too long for a worker."""
        return len(await self.rows(statements.GIVE_UP, {"queue_seconds": queue_seconds}))

    async def workers(self) -> set[UUID]:
        """Return the workers that have borrowed anything."""
        return {row.worker for row in await self.rows(statements.WORKERS)}

    async def state(self) -> QueueState:
        """Return how much waits and runs."""
        waiting = await self.rows(statements.DEPTH)
        (running,) = await self.rows(statements.RUNNING)
        return QueueState(
            queued=sum(row.queued for row in waiting),
            running=running.running,
            oldest_seconds=max((float(row.oldest_seconds) for row in waiting), default=0.0),
            queued_of={row.client: row.queued for row in waiting},
        )

    async def ended(self, job_ids: Collection[UUID]) -> set[UUID]:
        """Return which of these jobs have ended, or are not there at all."""
        rows = await self.rows(statements.ENDED, {"job_ids": list(job_ids)})
        return {row.id for row in rows}
