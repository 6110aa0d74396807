"""Deletes old solutions that are not among the best, a few hundred rows at a time.

Protected are the best solutions of every task on its data, the best of every run, all their
ancestors, and everything younger than the retention time. The statement that prunes a page computes
the protected set itself: a solution may become an ancestor of a best one at any moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from reward_server.store.database import Database

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

_PAGE = 500
_LOCK = 0x7265776172640002

# `pairs` and `triples` are loose index scans: one index probe per task and data, or per run. The
# advisory lock (`turn`) lets one process prune at a time; the others get an empty page.
# MATERIALIZED keeps the planner from evaluating the lock, the page and its losers more than once.
_PROTECTED = """
    pairs (task_id, data_digest) AS (
        (SELECT task_id, data_digest FROM solutions ORDER BY task_id, data_digest LIMIT 1)
        UNION ALL
        SELECT following.task_id, following.data_digest FROM pairs CROSS JOIN LATERAL (
            SELECT task_id, data_digest FROM solutions
            WHERE (solutions.task_id, solutions.data_digest) > (pairs.task_id, pairs.data_digest)
            ORDER BY task_id, data_digest LIMIT 1
        ) AS following
    ), triples (run_id, task_id, data_digest) AS (
        (SELECT run_id, task_id, data_digest FROM solutions
        ORDER BY run_id, task_id, data_digest LIMIT 1)
        UNION ALL
        SELECT following.run_id, following.task_id, following.data_digest
        FROM triples CROSS JOIN LATERAL (
            SELECT run_id, task_id, data_digest FROM solutions
            WHERE (solutions.run_id, solutions.task_id, solutions.data_digest)
                > (triples.run_id, triples.task_id, triples.data_digest)
            ORDER BY run_id, task_id, data_digest LIMIT 1
        ) AS following
    ), best (id, parent_id) AS (
        SELECT top.id, top.parent_id FROM pairs CROSS JOIN LATERAL (
            SELECT id, parent_id FROM solutions
            WHERE solutions.task_id = pairs.task_id AND valid
                AND solutions.data_digest = pairs.data_digest
            ORDER BY reward DESC, id DESC LIMIT :keep_best
        ) AS top
        UNION
        SELECT top.id, top.parent_id FROM triples CROSS JOIN LATERAL (
            SELECT id, parent_id FROM solutions
            WHERE solutions.run_id = triples.run_id AND solutions.task_id = triples.task_id
                AND solutions.data_digest = triples.data_digest AND valid
            ORDER BY reward DESC, id DESC LIMIT 1
        ) AS top
    ), protected (id, parent_id) AS (
        SELECT id, parent_id FROM best
        UNION
        SELECT parent.id, parent.parent_id
        FROM protected JOIN solutions AS parent ON parent.id = protected.parent_id
    ), turn AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(:lock) AS is_ours
    ), page AS MATERIALIZED (
        SELECT solutions.id, solutions.job_id, solutions.created_at FROM solutions, turn
        WHERE is_ours AND solutions.created_at
                < now() - make_interval(secs => CAST(:age_seconds AS double precision))
            AND (CAST(:after_time AS timestamptz) IS NULL
                OR (solutions.created_at, solutions.id) > (:after_time, CAST(:after_id AS uuid)))
        ORDER BY solutions.created_at, solutions.id LIMIT :most
    ), losers AS MATERIALIZED (
        SELECT id, job_id FROM page WHERE id NOT IN (SELECT id FROM protected)
    )
"""
_LAST = """
    SELECT created_at, id, (SELECT count(*) FROM changed) AS changed
    FROM page ORDER BY created_at DESC, id DESC LIMIT 1
"""
_FORGET_OUTPUTS = text(f"""
    WITH RECURSIVE {_PROTECTED}, changed AS (
        UPDATE solutions SET stdout_tail = '', stderr_tail = '' FROM losers
        WHERE solutions.id = losers.id AND (stdout_tail <> '' OR stderr_tail <> '')
        RETURNING solutions.id
    ) {_LAST}
""")  # noqa: S608 - made of constants
_FORGET_SOLUTIONS = text(f"""
    WITH RECURSIVE {_PROTECTED}, changed AS (
        DELETE FROM solutions USING losers WHERE solutions.id = losers.id
        RETURNING solutions.job_id
    ), items AS (
        DELETE FROM batch_items USING changed WHERE batch_items.job_id = changed.job_id
    ), forgotten AS (
        DELETE FROM jobs USING changed WHERE jobs.id = changed.job_id
    ) {_LAST}
""")  # noqa: S608
# Jobs that ended without a result have no solution that refers to them.
_FORGET_LOST_JOBS = text("""
    WITH lost AS (
        SELECT id FROM jobs WHERE state IN ('errored', 'cancelled') AND finished_at
            < now() - make_interval(secs => CAST(:age_seconds AS double precision))
        ORDER BY finished_at LIMIT :most FOR UPDATE SKIP LOCKED
    ), items AS (
        DELETE FROM batch_items USING lost WHERE job_id = lost.id
    )
    DELETE FROM jobs USING lost WHERE jobs.id = lost.id RETURNING jobs.id
""")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a pass over the solutions, oldest first, has come."""

    created_at: datetime
    solution_id: UUID


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of one page; without a position the pass is complete."""

    changed: int
    position: Position | None


class Pruning(Database):
    """Deletes what the retention settings allow."""

    async def forget_outputs(
        self, age_seconds: float, keep_best: int, after: Position | None
    ) -> Pruned:
        """Remove the output of older programs, for one page."""
        return await self._page(_FORGET_OUTPUTS, age_seconds, keep_best, after)

    async def forget_solutions(
        self, age_seconds: float, keep_best: int, after: Position | None
    ) -> Pruned:
        """Remove older solutions with their jobs, for one page."""
        return await self._page(_FORGET_SOLUTIONS, age_seconds, keep_best, after)

    async def forget_lost_jobs(self, age_seconds: float) -> int:
        """Remove older jobs that ended without a result, up to a page of them."""
        parameters = {"age_seconds": age_seconds, "most": _PAGE}
        return len(await self.rows(_FORGET_LOST_JOBS, parameters))

    async def _page(
        self,
        statement: Any,  # noqa: ANN401 - one of the two above
        age_seconds: float,
        keep_best: int,
        after: Position | None,
    ) -> Pruned:
        row = await self.row(
            statement,
            {
                "age_seconds": age_seconds,
                "keep_best": keep_best,
                "after_time": None if after is None else after.created_at,
                "after_id": None if after is None else after.solution_id,
                "most": _PAGE,
                "lock": _LOCK,
            },
        )
        if row is None:
            return Pruned(0, None)
        return Pruned(row.changed, Position(row.created_at, row.id))
