"""Solutions in the store for the tests of prompts, and a query about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reward_server.model import Grade, Program, Submission
from reward_server.prompts.prompt_types import PromptQuery
from reward_server.store.values import NewJob
from tests.integration.prompts.conftest import TASKS
from tests.integration.store.examples import CLAIM, FAILURE, verdict
from tests.integration.tasks import tiny

if TYPE_CHECKING:
    from uuid import UUID

    from reward_server.store.queries import Store
    from reward_server.tasks.registry import Registry

OTHER = TASKS[0]
QUERY = PromptQuery(tiny.ID, "r", 8, improve_fraction=1.0, seed=1)


@dataclass(frozen=True, slots=True)
class StoredSolution:
    """A solution in the store."""

    task_id: str = tiny.ID
    run_id: str = "r"
    step: int | None = 1
    valid: bool = True
    is_present: bool = True
    reward: float = 0.5
    code: str = "import lightgbm\nprint(1)\n"
    output: str = "loss 0.5\n"


async def keep(store: Store, registry: Registry, kept: StoredSolution) -> UUID:
    submission = Submission(kept.task_id, code="x", run_id=kept.run_id, step=kept.step)
    accepted = await store.accept(NewJob(submission, "digest"), CLAIM)
    digest = registry.get(kept.task_id).data_digest if kept.is_present else "of other data"
    found = replace(
        verdict(kept.reward, failure=None if kept.valid else FAILURE, stdout_tail=kept.output),
        program=Program(kept.code),
        data_digest=digest,
        grade=Grade(kept.reward if kept.valid else None, None if kept.valid else FAILURE),
    )
    return (await store.record(accepted.job_id, accepted.attempt, found)).solution_id
