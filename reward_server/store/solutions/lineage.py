"""The lineage of a solution: its ancestors and descendants, with the change at every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from reward_server.store.database import Database
from reward_server.store.rows import read

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

MOST_GENERATIONS = 100
_MOST_RELATIVES = 2_000

# Generations are counted from the solution itself: ancestors are negative, descendants positive.
# Postgres evaluates the recursion only as far as LIMIT reads it, so the limit bounds the search.
# `seen` ends the recursion where a lineage contains a cycle.
_LINE = text("""
    WITH RECURSIVE up (id, parent_id, generation, seen) AS (
        SELECT id, parent_id, 0, ARRAY[id] FROM solutions WHERE id = :id
        UNION ALL
        SELECT parent.id, parent.parent_id, generation - 1, seen || parent.id
        FROM up JOIN solutions AS parent ON parent.id = up.parent_id
        WHERE generation > -CAST(:up AS integer) AND parent.id <> ALL (seen)
    ), down (id, generation, seen) AS (
        SELECT id, 0, ARRAY[id] FROM solutions WHERE id = :id
        UNION ALL
        SELECT child.id, generation + 1, seen || child.id
        FROM down JOIN solutions AS child ON child.parent_id = down.id
        WHERE generation < CAST(:down AS integer) AND child.id <> ALL (seen)
    ), line (id, generation) AS (
        SELECT id, generation FROM up
        UNION
        (SELECT id, generation FROM down WHERE generation > 0 LIMIT :most)
    )
    SELECT own.id, own.parent_id, line.generation, own.task_id, own.run_id, own.step,
        own.reward, own.score, own.higher_is_better, own.valid, own.created_at,
        own.reward - parent.reward AS reward_change, own.score - parent.score AS score_change
    FROM line JOIN solutions AS own ON own.id = line.id
        LEFT JOIN solutions AS parent ON parent.id = own.parent_id AND parent.id <> own.id
    ORDER BY line.generation, own.reward DESC, own.id
""")


@dataclass(frozen=True, slots=True)
class Generation:
    """A solution in a lineage, and the change from its parent.

    Changes are None without a parent or without both scores.
    """

    solution_id: UUID
    parent_id: UUID | None
    generation: int
    task_id: str
    run_id: str
    step: int | None
    reward: float
    score: float | None
    higher_is_better: bool
    valid: bool
    reward_change: float | None
    score_change: float | None
    created_at: datetime


class Lineage(Database):
    """Finds ancestors and descendants of solutions."""

    async def of(self, solution_id: UUID, up: int, down: int) -> tuple[Generation, ...]:
        """Return ancestors, the solution and descendants, the oldest first; empty if unknown."""
        parameters = {"id": solution_id, "up": up, "down": down, "most": _MOST_RELATIVES}
        rows = await self.rows(_LINE, parameters)
        return tuple(read(Generation, row, solution_id=row.id) for row in rows)
