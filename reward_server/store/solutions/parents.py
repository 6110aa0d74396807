"""Solutions to improve on: candidates without their texts, then the texts of the chosen few.

Every query reads a bounded number of rows, however large the table is: the best `SCANNED` of a task
or a run, or as many of one step. Solutions that were scored on other data are never among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import text

from reward_server.store.database import Database
from reward_server.store.rows import failure_of, read, storable
from reward_server.store.solutions.model_families import OTHER

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from sqlalchemy import Row, TextClause

    from reward_server.model import Failure, Milestone

SCANNED = 256
_LAST_STEP = (1 << 63) - 1

_CANDIDATE = f"""id, reward, program_digest, COALESCE(family, '{OTHER}'),
    COALESCE(code_chars, length(code))"""


# LATERAL with a LIMIT reads each wanted kind (valid, failed) from its own range of the index; a
# plain `valid = ANY (…)` would sort all matching rows.
def _best(scope: str) -> TextClause:
    return text(f"""
        SELECT found.* FROM unnest(CAST(:valids AS boolean[])) AS wanted (valid)
        CROSS JOIN LATERAL (
            SELECT {_CANDIDATE} FROM solutions
            WHERE {scope} task_id = :task_id AND data_digest = :data_digest
                AND solutions.valid = wanted.valid
            ORDER BY reward DESC, id DESC LIMIT :most
        ) AS found
        ORDER BY reward DESC, id DESC LIMIT :most
    """)  # noqa: S608 - made of the two texts below


BEST_OF_TASK = _best("")
BEST_OF_RUN = _best("run_id = :run_id AND")

# The latest step that has a solution of the wanted kind, and of that step every such solution.
OF_STEP = text(f"""
    WITH previous AS (
        SELECT max(latest.step) AS step FROM unnest(CAST(:valids AS boolean[])) AS wanted (valid)
        CROSS JOIN LATERAL (
            SELECT step FROM solutions
            WHERE run_id = :run_id AND task_id = :task_id AND data_digest = :data_digest
                AND solutions.valid = wanted.valid AND step <= :last_step
            ORDER BY step DESC, id DESC LIMIT 1
        ) AS latest
    )
    SELECT found.* FROM previous
    CROSS JOIN unnest(CAST(:valids AS boolean[])) AS wanted (valid)
    CROSS JOIN LATERAL (
        SELECT {_CANDIDATE} FROM solutions
        WHERE run_id = :run_id AND task_id = :task_id AND data_digest = :data_digest
            AND solutions.valid = wanted.valid AND step = previous.step
        ORDER BY step, id LIMIT :most
    ) AS found
    ORDER BY id
""")  # noqa: S608

BODIES = text("""
    SELECT id, code, stdout_tail, stderr_tail, score, medal, error_kind, error_message,
        milestones, duration_seconds
    FROM solutions WHERE id = ANY (:ids)
""")

ORIGINS = text("SELECT id, task_id, data_digest FROM solutions WHERE id = ANY (:ids)")

# One row: solutions from scratch, the best child of each, and the better of the two.
BEST_OF_BOTH = text("""
    WITH scratch AS (
        SELECT id, reward FROM solutions
        WHERE run_id = :run_id AND task_id = :task_id AND data_digest = :data_digest
            AND prompt_kind = 'scratch'
    ), pairs AS (
        SELECT scratch.reward AS before, max(child.reward) AS after, count(child.id) AS children
        FROM scratch LEFT JOIN solutions AS child ON child.parent_id = scratch.id
            AND child.run_id = :run_id AND child.task_id = :task_id
            AND child.data_digest = :data_digest AND child.prompt_kind = 'improve'
        GROUP BY scratch.id, scratch.reward
    )
    SELECT count(*) AS samples, count(after) AS improved, COALESCE(sum(children), 0) AS children,
        count(*) FILTER (WHERE after > before) AS better,
        avg(before) AS scratch_mean, max(before) AS scratch_max,
        avg(after) AS improved_mean, max(after) AS improved_max,
        avg(GREATEST(before, after)) AS both_mean, max(GREATEST(before, after)) AS both_max
    FROM pairs
""")


@dataclass(frozen=True, slots=True)
class ParentScope:
    """Where parents may come from: a task with its present data, and one run or all runs."""

    task_id: str
    data_digest: str
    run_id: str | None = None
    failed_too: bool = False


class Candidate(NamedTuple):  # a tuple: hundreds are made for every request
    """A solution that could be improved on, with what a choice depends on."""

    solution_id: UUID
    reward: float
    program_digest: str
    family: str
    code_chars: int


@dataclass(frozen=True, slots=True)
class ParentBody:
    """What a prompt shows of the solution that it asks to improve on."""

    solution_id: UUID
    code: str
    stdout_tail: str
    stderr_tail: str
    score: float | None
    medal: str | None
    failure: Failure | None
    milestones: tuple[Milestone, ...]
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean and the highest of some rewards; none where there are none."""

    mean: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class BestOfBoth:
    """The gain from improving on solutions: rewards before, after, and the better of the two.

    `improved` counts the samples with a child, `better` those with a child of a higher reward.
    """

    samples: int
    improved: int
    children: int
    better: int
    from_scratch: Spread
    from_improving: Spread
    best_of_both: Spread


class Parents(Database):
    """Finds solutions to improve on."""

    async def best(self, scope: ParentScope) -> tuple[Candidate, ...]:
        """Return the best solutions, the best first."""
        statement = BEST_OF_TASK if scope.run_id is None else BEST_OF_RUN
        return _candidates(await self.rows(statement, pool_parameters(scope)))

    async def of_step(self, scope: ParentScope, before: int | None) -> tuple[Candidate, ...]:
        """Return the solutions of the latest step, or of the latest before another."""
        last_step = _LAST_STEP if before is None else before - 1
        parameters = pool_parameters(scope) | {"last_step": last_step}
        return _candidates(await self.rows(OF_STEP, parameters))

    async def origins(self, solution_ids: Collection[UUID]) -> dict[UUID, tuple[str, str]]:
        """Return the task and the data digest of those of these solutions that exist."""
        rows = await self.rows(ORIGINS, {"ids": list(solution_ids)})
        return {row.id: (row.task_id, row.data_digest) for row in rows}

    async def bodies(self, solution_ids: Collection[UUID]) -> dict[UUID, ParentBody]:
        """Return what a prompt shows of those of these solutions that exist."""
        if not solution_ids:
            return {}
        rows = await self.rows(BODIES, {"ids": list(solution_ids)})
        return {
            row.id: read(ParentBody, row, solution_id=row.id, failure=failure_of(row))
            for row in rows
        }

    async def best_of_both(self, task_id: str, data_digest: str, run_id: str) -> BestOfBoth:
        """Compare a run's solutions from scratch with those that improve on them."""
        parameters = {"task_id": storable(task_id), "data_digest": data_digest}
        row = await self.one(BEST_OF_BOTH, parameters | {"run_id": storable(run_id)})
        return BestOfBoth(
            samples=row.samples,
            improved=row.improved,
            children=int(row.children),
            better=row.better,
            from_scratch=Spread(row.scratch_mean, row.scratch_max),
            from_improving=Spread(row.improved_mean, row.improved_max),
            best_of_both=Spread(row.both_mean, row.both_max),
        )


def pool_parameters(scope: ParentScope) -> dict[str, Any]:
    """Return the parameters that choose candidates."""
    run = {} if scope.run_id is None else {"run_id": storable(scope.run_id)}
    return run | {
        "task_id": storable(scope.task_id),
        "data_digest": scope.data_digest,
        "valids": [True, False] if scope.failed_too else [True],
        "most": SCANNED,
    }


def _candidates(rows: Sequence[Row[Any]]) -> tuple[Candidate, ...]:
    return tuple(map(Candidate._make, rows))
