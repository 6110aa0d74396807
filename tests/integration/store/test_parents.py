"""Every frequent query for parents uses an index, whatever the table contains."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from reward_server.model import PromptKind
from reward_server.store.solutions import parents
from reward_server.store.solutions.paging import SolutionFilter, select_page
from reward_server.store.solutions.parents import (
    Parents,
    ParentScope,
    Spread,
    pool_parameters,
)
from tests.integration.prompts import many_solutions as many
from tests.integration.store.examples import FAILURE, SUBMISSION, add

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import ClauseElement
    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.model import Submission
    from reward_server.store.queries import Store

TASKS = [(f"task-{number}", f"{number:064}") for number in range(3)]
RUN = ParentScope("task-0", TASKS[0][1], "run-0")
ROWS = 20_000


async def explain(engine: AsyncEngine, statement: ClauseElement, given: dict[str, Any]) -> str:
    async with engine.connect() as connection:
        # As after its first executions: the plan must be good for all parameters.
        await connection.execute(text("SET plan_cache_mode = force_generic_plan"))
        raw = statement.compile(dialect=engine.dialect)
        rows = await connection.exec_driver_sql(
            f"EXPLAIN (COSTS OFF) {raw}",
            tuple((raw.params | given)[name] for name in getattr(raw, "positiontup", None) or ()),
        )
        plan = "\n".join(row[0] for row in rows)
        await connection.execute(text("RESET plan_cache_mode"))
        return plan


async def test_hot_queries_never_read_the_whole_table(store: Store, engine: AsyncEngine) -> None:
    del store  # it has emptied the tables
    await many.fill(engine, 0, ROWS, TASKS, "print(1)\n")
    run = pool_parameters(replace(RUN, failed_too=True))
    task = pool_parameters(replace(RUN, run_id=None))
    found = await Parents(engine).best(RUN)
    hot: dict[str, tuple[ClauseElement, dict[str, Any]]] = {
        "best of task": (parents.BEST_OF_TASK, task),
        "best of run": (parents.BEST_OF_RUN, run),
        "step": (parents.OF_STEP, run | {"last_step": 30}),
        "bodies": (parents.BODIES, {"ids": [found[0].solution_id]}),
        "list": (select_page(SolutionFilter(task_id="task-0", limit=1)), {}),
        "valid list": (select_page(SolutionFilter(task_id="task-0", valid=True, limit=1)), {}),
    }
    for name, (statement, given) in hot.items():
        plan = await explain(engine, statement, given)
        assert "Index" in plan, name
        assert "Seq Scan" not in plan, f"{name}: {plan}"


async def test_queries_for_parents_return_a_bounded_number_of_rows(
    store: Store, engine: AsyncEngine
) -> None:
    del store
    await many.fill(engine, 0, 2000, TASKS, "print(1)\n")
    looker = Parents(engine)
    best = await looker.best(replace(RUN, run_id=None))
    assert len(best) == parents.SCANNED
    assert [c.reward for c in best] == sorted((c.reward for c in best), reverse=True)
    async with engine.connect() as connection:
        highest = await connection.execute(
            text("SELECT max(reward) FROM solutions WHERE task_id = 'task-0'")
        )
        assert best[0].reward == highest.scalar_one()
    assert 0 < len(await looker.of_step(RUN, None)) <= many.STEP_SIZE
    assert {c.family for c in best} > {"lightgbm", "linear"}


async def test_best_of_both_takes_the_better_of_each_sample(
    store: Store, engine: AsyncEngine
) -> None:
    scratch = [await add(store, reward=reward) for reward in (0.2, 0.6, 0.4)]

    def child(parent: UUID) -> Submission:
        return replace(SUBMISSION, parent_id=str(parent), prompt_kind=PromptKind.IMPROVE)

    await add(store, child(scratch[0]), reward=0.5)
    await add(store, child(scratch[0]), reward=-10.0, failure=FAILURE)
    await add(store, child(scratch[1]), reward=0.3)
    await add(store, replace(child(scratch[2]), run_id="q"), reward=9.0)
    found = await Parents(engine).best_of_both("spaceship", "d1", "default")
    assert (found.samples, found.improved, found.children, found.better) == (3, 2, 3, 1)
    spreads = (found.from_scratch, found.from_improving, found.best_of_both)
    assert [one.mean for one in spreads] == [pytest.approx(mean) for mean in (0.4, 0.4, 0.5)]
    assert [one.max for one in spreads] == [0.6, 0.5, 0.6]
    nothing = await Parents(engine).best_of_both("spaceship", "other data", "default")
    assert (nothing.samples, nothing.best_of_both) == (0, Spread(None, None))
