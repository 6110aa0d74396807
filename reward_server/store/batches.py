"""Batches: jobs that are waited for together, made in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from reward_server.errors import RequestError, boundary
from reward_server.model import ErrorKind
from reward_server.store import statements
from reward_server.store.database import Database
from reward_server.store.rows import failure_of, order_parameters
from reward_server.store.values import BatchItem, BatchRow, JobState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncConnection

    from reward_server.store.values import Order

_CREATE = text(
    "INSERT INTO batches (min_complete, rest) VALUES (:min_complete, :rest) RETURNING id"
)
_ADD = text("""
    INSERT INTO batch_items (batch_id, place, job_id, is_own)
    VALUES (:batch_id, :place, :job_id, :is_own)
""")
_BATCH = text("SELECT id, min_complete, rest FROM batches WHERE id = :batch_id")
_ITEMS = text("""
    SELECT place, job_id, state, error_kind, error_message
    FROM batch_items JOIN jobs ON jobs.id = job_id
    WHERE batch_id = :batch_id ORDER BY finished_at NULLS LAST, place
""")
# A batch is complete when enough have a reward, or when there is nothing left to wait for. What it
# brought and nobody else has in a batch is cancelled then, if it asked for that.
_CLOSE = text("""
    WITH complete AS (
        SELECT id FROM batches
        WHERE closed_at IS NULL AND (CAST(:batch_id AS uuid) IS NULL OR id = :batch_id) AND (
            SELECT count(*) FILTER (WHERE state IN ('scored', 'failed')) >= min_complete
                OR count(*) FILTER (WHERE state IN ('queued', 'running')) = 0
            FROM batch_items JOIN jobs ON jobs.id = job_id WHERE batch_id = batches.id
        )
        FOR UPDATE SKIP LOCKED
    ), closed AS (
        UPDATE batches SET closed_at = now() FROM complete WHERE batches.id = complete.id
        RETURNING batches.id, rest
    )
    UPDATE jobs SET state = 'cancelled', finished_at = now(), worker = NULL, lease_until = NULL
    FROM batch_items AS item JOIN closed ON closed.id = item.batch_id
    WHERE closed.rest = 'cancel' AND jobs.id = item.job_id AND item.is_own
        AND jobs.state IN ('queued', 'running')
        AND NOT EXISTS (
            SELECT 1 FROM batch_items AS other
            WHERE other.job_id = jobs.id AND other.batch_id <> item.batch_id
        )
    RETURNING jobs.id
""")


class Batches(Database):
    """The batches of one database."""

    async def create(
        self, orders: Sequence[Order], min_complete: int, *, cancels_rest: bool
    ) -> tuple[UUID, list[UUID]]:
        """Make all jobs of a batch durable, or none; known keys join their jobs.

        Raises:
            RequestError: `conflict` when a key belongs to another body.
        """
        rest = "cancel" if cancels_rest else "continue"
        serial = self._engine.execution_options(isolation_level="READ COMMITTED")
        with boundary(ErrorKind.STORE_ERROR, "store"):
            async with serial.begin() as connection:
                created = {"min_complete": min_complete, "rest": rest}
                batch_id: UUID = (await connection.execute(_CREATE, created)).scalar_one()
                jobs = await _accept_all(connection, orders)
                items = [
                    {"batch_id": batch_id, "place": place, "job_id": job_id, "is_own": is_own}
                    for place, (job_id, is_own) in enumerate(jobs)
                ]
                await connection.execute(_ADD, items)
        return batch_id, [job_id for job_id, _ in jobs]

    async def get(self, batch_id: UUID) -> BatchRow | None:
        """Return a batch with its items, those that ended first in front."""
        row = await self.row(_BATCH, {"batch_id": batch_id})
        if row is None:
            return None
        items = await self.rows(_ITEMS, {"batch_id": batch_id})
        return BatchRow(
            batch_id=batch_id,
            min_complete=row.min_complete,
            cancels_rest=row.rest == "cancel",
            items=tuple(
                BatchItem(item.place, item.job_id, JobState(item.state), failure_of(item))
                for item in items
            ),
        )

    async def close(self, batch_id: UUID | None = None) -> int:
        """Close this batch, or all, where they are complete; return how many jobs that ended."""
        return len(await self.rows(_CLOSE, {"batch_id": batch_id}))


async def _accept_all(
    connection: AsyncConnection, orders: Sequence[Order]
) -> list[tuple[UUID, bool]]:
    """Accept in the order of the keys, so that two batches cannot wait for each other."""
    jobs: dict[int, tuple[UUID, bool]] = {}
    for index in sorted(range(len(orders)), key=lambda i: orders[i].idempotency_key or ""):
        jobs[index] = await _accept(connection, orders[index])
    return [jobs[index] for index in range(len(orders))]


async def _accept(connection: AsyncConnection, order: Order) -> tuple[UUID, bool]:
    parameters = order_parameters(order)
    row: Any = (await connection.execute(statements.ACCEPT, parameters)).first()
    if row is not None:
        return row.id, True
    key = {"key": parameters["idempotency_key"]}
    existing = (await connection.execute(statements.FIND_BY_KEY, key)).one()
    if existing.body_digest != order.body_digest:
        message = "an idempotency key of this batch was used with another request"
        raise RequestError(ErrorKind.CONFLICT, message)
    return existing.id, False
