"""Statistics of a run, step by step: rewards, failures, milestones and durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from reward_server.model import Milestone
from reward_server.store.database import Database
from reward_server.store.rows import read, storable, storable_or_none

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Row

MOST_RUNS = 500

# A loose index scan: one index probe per run, however many solutions a run has.
_RUNS = text("""
    WITH RECURSIVE found (run_id) AS (
        (SELECT run_id FROM solutions
        WHERE CAST(:after AS text) IS NULL OR run_id > :after ORDER BY run_id LIMIT 1)
        UNION ALL
        SELECT (SELECT solutions.run_id FROM solutions
            WHERE solutions.run_id > found.run_id ORDER BY solutions.run_id LIMIT 1)
        FROM found WHERE found.run_id IS NOT NULL
    )
    SELECT found.run_id, first.created_at AS first_at, last.created_at AS last_at
    FROM found CROSS JOIN LATERAL (
        SELECT created_at FROM solutions WHERE solutions.run_id = found.run_id
        ORDER BY created_at, id LIMIT 1
    ) AS first CROSS JOIN LATERAL (
        SELECT created_at FROM solutions WHERE solutions.run_id = found.run_id
        ORDER BY created_at DESC, id DESC LIMIT 1
    ) AS last
    WHERE found.run_id IS NOT NULL LIMIT :most
""")
_OF_RUN = "run_id = :run_id AND (CAST(:task_id AS text) IS NULL OR task_id = :task_id)"
_FUNNEL = ", ".join(
    f"count(*) FILTER (WHERE {one.value} = ANY (milestones)) AS milestone_{one.value}"
    for one in Milestone
)
_STEPS = text(f"""
    SELECT task_id, step, GROUPING(step) = 1 AS is_total, count(*) AS solutions,
        count(*) FILTER (WHERE valid) AS valid,
        count(*) FILTER (WHERE prompt_kind = 'improve') AS improved,
        avg(reward) AS mean_reward, max(reward) AS max_reward, stddev_samp(reward) AS spread_reward,
        CASE WHEN bool_or(higher_is_better) THEN max(score) ELSE min(score) END AS best_score,
        avg(duration_seconds) AS mean_duration,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_seconds) AS p50_duration,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_seconds) AS p95_duration,
        {_FUNNEL}
    FROM solutions WHERE {_OF_RUN}
    GROUP BY GROUPING SETS ((task_id, step), (task_id))
    ORDER BY task_id, is_total DESC, step NULLS FIRST
""")  # noqa: S608 - made of constants
_FAILURES = text(f"""
    SELECT task_id, step, GROUPING(step) = 1 AS is_total, error_kind, count(*) AS failures
    FROM solutions WHERE {_OF_RUN} AND error_kind IS NOT NULL
    GROUP BY GROUPING SETS ((task_id, step, error_kind), (task_id, error_kind))
""")  # noqa: S608

_Group = tuple[str, int | None, bool]


@dataclass(frozen=True, slots=True)
class RunSpan:
    """A run with solutions, and the times of the first and the last of them."""

    run_id: str
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class StepStatistics:
    """Statistics of the solutions of one task in one step, or in all steps (`is_total`)."""

    task_id: str
    step: int | None
    is_total: bool
    solutions: int
    valid: int
    improved: int
    mean_reward: float
    max_reward: float
    spread_reward: float | None
    best_score: float | None
    failures: Mapping[str, int]
    milestones: Mapping[str, int]
    mean_duration: float
    p50_duration: float
    p95_duration: float


class Statistics(Database):
    """Computes statistics of runs."""

    async def runs(self, after: str | None, most: int) -> tuple[RunSpan, ...]:
        """Return the runs whose names follow `after`, by name."""
        parameters = {"after": storable_or_none(after), "most": most}
        rows = await self.rows(_RUNS, parameters)
        return tuple(read(RunSpan, row) for row in rows)

    async def steps(self, run_id: str, task_id: str | None = None) -> tuple[StepStatistics, ...]:
        """Return the statistics of a run: for each task the total first, then step by step."""
        parameters = {"run_id": storable(run_id), "task_id": storable_or_none(task_id)}
        steps = await self.rows(_STEPS, parameters)
        failures = _by_group(await self.rows(_FAILURES, parameters))
        return tuple(_read(row, failures.get(_group(row), {})) for row in steps)


def _group(row: Row[Any]) -> _Group:
    return row.task_id, row.step, row.is_total


def _by_group(rows: Sequence[Row[Any]]) -> dict[_Group, dict[str, int]]:
    found: dict[_Group, dict[str, int]] = {}
    for row in sorted(rows, key=lambda row: row.error_kind):
        found.setdefault(_group(row), {})[row.error_kind] = row.failures
    return found


def _read(row: Row[Any], failures: Mapping[str, int]) -> StepStatistics:
    funnel = {one.name.lower(): getattr(row, f"milestone_{one.value}") for one in Milestone}
    return read(StepStatistics, row, failures=failures, milestones=funnel)
