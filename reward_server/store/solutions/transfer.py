"""Export and import of solutions.

A record is a row of `solutions` by the names of its columns, with its rewards under other schemes.
Importing a solution that exists already changes nothing, so an interrupted import can be repeated.
A solution comes with a job that has ended, without the text that was sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text, tuple_
from sqlalchemy.exc import DataError, IntegrityError

from reward_server.errors import boundary
from reward_server.model import ErrorKind
from reward_server.store.database import Database
from reward_server.store.solutions.paging import conditions
from reward_server.store.solutions.records import MalformedRecordError, check_record, to_record
from reward_server.store.tables import rewards, solutions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

    from sqlalchemy import Row

    from reward_server.store.solutions.paging import SolutionFilter
    from reward_server.store.solutions.records import Record

PAGE = 500
_NAMES = ", ".join(column.name for column in solutions.c)
_IMPORT_JOBS = text("""
    INSERT INTO jobs (id, body_digest, task_id, code, run_id, step, sample_id, parent_id,
        prompt_kind, state, attempt, created_at, started_at, finished_at)
    SELECT job_id, 'imported', task_id, '', run_id, step, sample_id, parent_id,
        prompt_kind, status, attempt, created_at, created_at, created_at
    FROM jsonb_populate_recordset(NULL::solutions, CAST(:records AS jsonb))
    ON CONFLICT DO NOTHING
""")
_IMPORT_SOLUTIONS = text(f"""
    INSERT INTO solutions ({_NAMES})
    SELECT {_NAMES} FROM jsonb_populate_recordset(NULL::solutions, CAST(:records AS jsonb))
    ON CONFLICT DO NOTHING RETURNING id
""")  # noqa: S608 - made of column names
_IMPORT_REWARDS = text("""
    INSERT INTO rewards (solution_id, scheme, scheme_version, value)
    SELECT record.id, scheme, scheme_version, value
    FROM jsonb_to_recordset(CAST(:records AS jsonb)) AS record (id uuid, rewards jsonb),
        jsonb_to_recordset(rewards) AS one (scheme text, scheme_version integer, value float8)
    ON CONFLICT DO NOTHING
""")


class Transfer(Database):
    """Exports and imports solutions."""

    async def count(self, wanted: SolutionFilter) -> int:
        """Return how many solutions an export has."""
        number = select(func.count()).select_from(solutions).where(*conditions(wanted))
        (row,) = await self.rows(number)
        return int(row[0])

    async def pages(self, wanted: SolutionFilter) -> AsyncIterator[list[Record]]:
        """Yield all selected solutions, the oldest first, a page at a time."""
        position = tuple_(solutions.c.created_at, solutions.c.id)
        chosen = select(solutions).where(*conditions(wanted)).limit(PAGE)
        chosen = chosen.order_by(solutions.c.created_at, solutions.c.id)
        rows = await self.rows(chosen)
        while rows:
            yield await self._with_rewards(rows)
            last = rows[-1]
            rows = await self.rows(chosen.where(position > (last.created_at, last.id)))

    async def _with_rewards(self, rows: Sequence[Row[Any]]) -> list[Record]:
        ids = [row.id for row in rows]
        others: dict[UUID, list[Record]] = {}
        for row in await self.rows(select(rewards).where(rewards.c.solution_id.in_(ids))):
            one = {"scheme": row.scheme, "scheme_version": row.scheme_version, "value": row.value}
            others.setdefault(row.solution_id, []).append(one)
        return [to_record(row, others.get(row.id, [])) for row in rows]

    async def import_records(self, records: Sequence[Record]) -> int:
        """Add the records that do not exist yet, all or none; return how many were added.

        Raises:
            MalformedRecordError: when one of them is not a solution.
            InfrastructureError: `store_error`.
        """
        content = {"records": json.dumps([check_record(record) for record in records])}
        serial = self._engine.execution_options(isolation_level="READ COMMITTED")
        with boundary(ErrorKind.STORE_ERROR, "store"):
            try:
                async with serial.begin() as connection:
                    await connection.execute(_IMPORT_JOBS, content)
                    added = (await connection.execute(_IMPORT_SOLUTIONS, content)).all()
                    await connection.execute(_IMPORT_REWARDS, content)
            except (IntegrityError, DataError) as error:
                refused = MalformedRecordError(f"the store refuses a solution: {error.orig}")
            else:
                return len(added)
        raise refused
