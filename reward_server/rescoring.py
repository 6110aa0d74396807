"""Rewards of stored solutions under another scheme, without running anything again.

The original answers do not change: the new rewards are stored beside them, one page at a time, and
rescoring is idempotent. A scheme that needs a scale uses the task's present one, so it rescores
only solutions made on the data that is prepared now and counts the others as skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reward_server.errors import RequestError
from reward_server.reward.base import Scale

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reward_server.reward.base import Scheme
    from reward_server.store.queries import Store
    from reward_server.store.values import OutcomeFilter, StoredOutcome
    from reward_server.tasks.base import Task
    from reward_server.tasks.registry import Registry

_PAGE = 500


@dataclass(frozen=True, slots=True)
class TaskTally:
    """How many of one task's solutions were rescored, and their mean reward before and after."""

    task_id: str
    rescored: int = 0
    skipped: int = 0
    mean_before: float | None = None
    mean_after: float | None = None

    def add(self, before: float, after: float) -> TaskTally:
        """Return the tally with one more rescored solution."""
        number = self.rescored + 1
        return replace(
            self,
            rescored=number,
            mean_before=_next_mean(self.mean_before, before, number),
            mean_after=_next_mean(self.mean_after, after, number),
        )

    def skip(self) -> TaskTally:
        """Return the tally with one more solution whose scale is unknown."""
        return replace(self, skipped=self.skipped + 1)


Tallies = dict[str, TaskTally]


async def rescore(
    store: Store, registry: Registry, scheme: Scheme, wanted: OutcomeFilter
) -> AsyncIterator[Tallies]:
    """Store the rewards of solutions under a scheme; yield the tallies after each page.

    Raises:
        InfrastructureError: `store_error`; the pages before stay stored.
        SetupError: when a task's manifest or leaderboard is damaged.
    """
    tallies: Tallies = {}
    tasks: dict[str, Task | None] = {}
    last: StoredOutcome | None = None
    while page := await store.outcomes(wanted, last, _PAGE):
        for task_id in {outcome.task_id for outcome in page} - tasks.keys():
            tasks[task_id] = _find(registry, task_id)
        values = {}
        for outcome in page:
            tally = tallies.get(outcome.task_id) or TaskTally(outcome.task_id)
            scale = _scale(scheme, outcome, tasks[outcome.task_id])
            if scale is None:
                tallies[outcome.task_id] = tally.skip()
                continue
            value = scheme.reward(outcome.execution, outcome.grade, scale).value
            values[outcome.solution_id] = value
            tallies[outcome.task_id] = tally.add(outcome.reward, value)
        await store.keep_rewards(scheme.name, scheme.version, values)
        last = page[-1]
        yield dict(tallies)


def _find(registry: Registry, task_id: str) -> Task | None:
    try:
        return registry.get(task_id)
    except RequestError:
        return None


def _scale(scheme: Scheme, outcome: StoredOutcome, task: Task | None) -> Scale | None:
    if not scheme.needs_scale:
        return Scale(outcome.higher_is_better)
    if task is None or task.data_digest != outcome.data_digest:
        return None
    return task.scale


def _next_mean(mean: float | None, value: float, number: int) -> float:
    return value if mean is None else mean + (value - mean) / number
