"""The queue as workers see it: lease jobs, renew leases, retry, fail and release jobs.

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
        """Lease up to `most` jobs of these tasks: urgent ones first, runs in turn."""
        parameters = {
            "worker": claim.worker,
            "lease_seconds": claim.lease_seconds,
            "most": most,
            "task_ids": list(task_ids),
        }
        rows = await self.rows(statements.CLAIM, parameters)
        return [to_claimed(row) for row in rows]

    async def peek(self, most: int) -> list[UUID]:
        """Return the jobs that have waited longest, without leasing them."""
        return [row.id for row in await self.rows(statements.PEEK, {"most": most})]

    async def submissions(self, job_ids: Collection[UUID]) -> list[Submission]:
        """Return the submissions of these jobs."""
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
        """Requeue a job for another attempt; False if it has no attempts or no time left.

        An attempt that could not begin is not a fault and does not count.
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
        """End a job without a result; False if this attempt is no longer the current one."""
        parameters = {
            "job_id": job_id,
            "attempt": attempt,
            "kind": kind.value,
            "message": storable(message),
        }
        return await self.row(statements.FAIL, parameters) is not None

    async def release(self, worker: UUID) -> int:
        """Requeue all jobs that a worker has leased; this does not count as a fault."""
        return len(await self.rows(statements.RELEASE, {"worker": worker}))

    async def expire(self, max_attempts: int, dead: Collection[UUID] = ()) -> int:
        """Requeue or end the jobs of workers whose leases expired or that are known to be dead."""
        parameters = {"max_attempts": max_attempts, "dead": list(dead)}
        return len(await self.rows(statements.EXPIRE, parameters))

    async def give_up(self, queue_seconds: float) -> int:
        """End jobs that have waited too long for a worker."""
        return len(await self.rows(statements.GIVE_UP, {"queue_seconds": queue_seconds}))

    async def workers(self) -> set[UUID]:
        """Return the workers that have leased jobs."""
        return {row.worker for row in await self.rows(statements.WORKERS)}

    async def state(self) -> QueueState:
        """Return how many jobs wait and run."""
        waiting = await self.rows(statements.DEPTH)
        (running,) = await self.rows(statements.RUNNING)
        return QueueState(
            queued=sum(row.queued for row in waiting),
            running=running.running,
            oldest_seconds=max((float(row.oldest_seconds) for row in waiting), default=0.0),
            queued_of={row.client: row.queued for row in waiting},
        )

    async def ended(self, job_ids: Collection[UUID]) -> set[UUID]:
        """Return which of these jobs have ended or do not exist."""
        rows = await self.rows(statements.ENDED, {"job_ids": list(job_ids)})
        return {row.id for row in rows}
