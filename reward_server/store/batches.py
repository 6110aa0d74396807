"""Batches: jobs that are created in one transaction and waited for together."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

from reward_server.errors import RequestError, boundary
from reward_server.model import ErrorKind
from reward_server.store import batch_statements as statements
from reward_server.store.database import Database
from reward_server.store.rows import failure_of, order_parameters, storable_or_none
from reward_server.store.values import BatchItem, BatchRow, JobState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any
    from uuid import UUID

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from reward_server.store.values import NewJob

_AT_ONCE = 500


class Batches(Database):
    """The batches of one database."""

    async def create(
        self, orders: Sequence[NewJob], min_complete: int, *, cancels_rest: bool
    ) -> tuple[UUID, list[UUID]]:
        """Create all jobs of a batch durably, or none; known keys join their jobs.

        Raises:
            RequestError: `conflict` when a key belongs to another body.
        """
        rest = "cancel" if cancels_rest else "continue"
        serial = self._engine.execution_options(isolation_level="READ COMMITTED")
        with boundary(ErrorKind.STORE_ERROR, "store"):
            keyed = _Keyed(orders)
            async with serial.begin() as connection:
                created = {"min_complete": min_complete, "rest": rest}
                batch_id: UUID = (await connection.execute(statements.CREATE, created)).scalar_one()
                jobs = await _accept_all(connection, keyed)
                job_ids = [job_id for job_id, _ in jobs]
                items = {
                    "batch_id": batch_id,
                    "places": list(range(len(jobs))),
                    "job_ids": job_ids,
                    "are_own": [is_own for _, is_own in jobs],
                }
                await connection.execute(statements.ADD, items)
        return batch_id, job_ids

    async def count_new(self, orders: Sequence[NewJob]) -> int:
        """Return how many jobs a batch of these would add to the queue."""
        keyed = _Keyed(orders)
        keys = [key for key in keyed.keys if key is not None]
        rows = await self.rows(statements.FIND_BY_KEYS, {"keys": keys})
        states = [JobState(row.state) for row in rows]
        return len(keyed.indexes) - sum(not s.has_ended or s.has_answer for s in states)

    async def get(self, batch_id: UUID) -> BatchRow | None:
        """Return a batch with its items in the order in which they ended."""
        row = await self.row(statements.BATCH, {"batch_id": batch_id})
        if row is None:
            return None
        items = await self.rows(statements.ITEMS, {"batch_id": batch_id})
        return BatchRow(
            batch_id=batch_id,
            min_complete=row.min_complete,
            cancels_rest=row.rest == "cancel",
            items=tuple(map(_item, items)),
        )

    async def items_of(self, batch_id: UUID, job_ids: Collection[UUID]) -> tuple[BatchItem, ...]:
        """Return the items of a batch for these jobs, in the order in which they ended."""
        parameters = {"batch_id": batch_id, "job_ids": list(job_ids)}
        return tuple(map(_item, await self.rows(statements.ITEMS_OF, parameters)))

    async def close(self, batch_id: UUID | None = None) -> int:
        """Close this batch, or all batches, if complete; return how many jobs were cancelled."""
        return len(await self.rows(statements.CLOSE, {"batch_id": batch_id}))


def _item(row: Row[Any]) -> BatchItem:
    return BatchItem(row.place, row.job_id, JobState(row.state), failure_of(row))


class _Keyed:
    """The jobs of a batch by their keys.

    `indexes` are those of the jobs to insert: the first of every key, and all without a key.
    They are sorted by key: all batches lock keys in the same order, so that none deadlock.
    """

    def __init__(self, orders: Sequence[NewJob]) -> None:
        self.orders = orders
        self.keys = [storable_or_none(order.idempotency_key) for order in orders]
        first: dict[str, int] = {}
        for index, key in enumerate(self.keys):
            if key is not None:
                _check_body(orders[first.setdefault(key, index)], orders[index].body_digest)
        indexes = (p for p, key in enumerate(self.keys) if key is None or first[key] == p)
        self.indexes = sorted(indexes, key=lambda index: self.keys[index] or "")


def _check_body(order: NewJob, body_digest: str) -> None:
    if body_digest != order.body_digest:
        message = "an idempotency key of this batch was used with another request"
        raise RequestError(ErrorKind.CONFLICT, message)


async def _accept_all(connection: AsyncConnection, keyed: _Keyed) -> list[tuple[UUID, bool]]:
    """Return the job of every item, and whether this batch created it."""
    new_ids = {index: uuid4() for index in keyed.indexes}
    own: dict[str, UUID] = {}
    for chunk in _chunks(keyed.indexes):
        parameters = _parameters(keyed, chunk, new_ids)
        rows = (await connection.execute(statements.ACCEPT_ALL, parameters)).all()
        own |= {row.idempotency_key: row.id for row in rows if row.idempotency_key is not None}
    joined = await _join(connection, keyed, own)
    jobs = []
    for index, key in enumerate(keyed.keys):
        if key is None:
            jobs.append((new_ids[index], True))
        else:
            jobs.append((own.get(key) or joined[key], key in own and index in new_ids))
    return jobs


async def _join(
    connection: AsyncConnection, keyed: _Keyed, own: dict[str, UUID]
) -> dict[str, UUID]:
    """Return the existing jobs of the keys that this batch did not insert."""
    orders = {key: keyed.orders[index] for index in keyed.indexes if (key := keyed.keys[index])}
    keys = [key for key in orders if key not in own]
    if not keys:
        return {}
    rows = (await connection.execute(statements.FIND_BY_KEYS, {"keys": keys})).all()
    for row in rows:
        _check_body(orders[row.idempotency_key], row.body_digest)
    return {row.idempotency_key: row.id for row in rows}


def _parameters(
    keyed: _Keyed, indexes: Sequence[int], new_ids: dict[int, UUID]
) -> dict[str, list[Any]]:
    rows = [
        order_parameters(keyed.orders[index]) | {"id": new_ids[index], "place": index}
        for index in indexes
    ]
    return {name: [row[name] for row in rows] for name in (*statements.COLUMNS, "place")}


def _chunks(indexes: Sequence[int]) -> Iterator[Sequence[int]]:
    """Split a long batch: building one huge statement would block the event loop."""
    rest = iter(indexes)
    while chunk := tuple(islice(rest, _AT_ONCE)):
        yield chunk
