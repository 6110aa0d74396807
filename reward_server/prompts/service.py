"""Answers a query with prompts: it selects parents, and composes texts within the budget.

Which prompts improve on a parent is drawn first, so that it depends on the seed alone; the
parents are drawn after that. Without a parent the prompt asks for a first program, and says why.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, assert_never

from reward_server.errors import RequestError
from reward_server.model import ErrorKind, PromptKind
from reward_server.prompts.composer import BriefingLevels, Composer
from reward_server.prompts.parent_selection import (
    ParentSelector,
    draw,
    without_duplicates,
    write_prompts,
)
from reward_server.prompts.prompt_types import CharacterBudget, Prompt, Strategy, TokenBudget
from reward_server.prompts.templates import Rules
from reward_server.prompts.token_counters import CharacterCounter
from reward_server.store.solutions.parents import ParentScope

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from reward_server.model import Limits
    from reward_server.prompts.parent_selection import Draw
    from reward_server.prompts.prompt_types import Budget, Messages, PromptQuery
    from reward_server.prompts.token_counters import TokenCounter
    from reward_server.store.solutions.parents import BestOfBoth, Candidate, Parents
    from reward_server.tasks.base import Task
    from reward_server.tasks.briefing.briefings import Briefings
    from reward_server.tasks.registry import Registry

_CHARACTERS = CharacterCounter()
_TOO_LONG = "no solution that could be chosen fits the budget, or can be shown"
_UNFIT = "this solution does not fit the budget, or cannot be shown"


@dataclass(frozen=True, slots=True)
class PromptDefaults:
    """The server's settings for prompts, used where a query leaves them open."""

    ceiling: Limits
    budget_characters: int
    temperature: float
    failed_too: bool
    has_gpu: bool


class PromptService:
    """Makes prompts from prepared tasks and stored solutions."""

    def __init__(
        self,
        registry: Registry,
        briefings: Briefings,
        parents: Parents,
        counters: Iterable[TokenCounter],
        defaults: PromptDefaults,
    ) -> None:
        self._registry = registry
        self._briefings = briefings
        self._parents = parents
        self._counters: dict[str, TokenCounter] = {counter.name: counter for counter in counters}
        self._defaults = defaults
        self._levels: dict[tuple[str, str], tuple[str, BriefingLevels]] = {}

    async def create_prompts(self, query: PromptQuery) -> tuple[Prompt, ...]:
        """Return the prompts that a query asks for.

        Raises:
            RequestError: `unknown_task`, `invalid_request` for an unknown tokenizer or a
                budget that is too small for any prompt, or as `_improve_named`.
        """
        task = self._registry.get(query.task_id)
        composer = await asyncio.to_thread(self._composer, task, query)
        scratch = Prompt(PromptKind.SCRATCH, await asyncio.to_thread(composer.scratch))
        if query.parent_ids:
            return await self._improve_named(query.parent_ids, task, composer, scratch)
        rng = Random(query.seed)  # noqa: S311 - repeatable draws, no secrets
        improves = [rng.random() < query.improve_fraction for _ in range(query.count)]
        if not any(improves):
            return (scratch,) * query.count
        scope = self._scope(task, query)
        pool = await self._candidates(scope, query)
        chooser = ParentSelector(self._parents, composer, self._draw(query, rng))
        chosen = await chooser.choose(pool, sum(improves))
        if not chosen:
            why = _TOO_LONG if pool else _missing(scope, query)
            fallback = replace(scratch, fallback=why)
            return tuple(fallback if improve else scratch for improve in improves)
        parents = iter(chosen)
        return tuple(_improve(*next(parents)) if improve else scratch for improve in improves)

    async def best_of_both(self, task_id: str, run_id: str) -> BestOfBoth:
        """Summarize what improving was worth in a run, on the task's current data.

        Raises:
            RequestError: `unknown_task`.
        """
        task = self._registry.get(task_id)
        return await self._parents.best_of_both(task_id, task.data_digest, run_id)

    async def _improve_named(
        self, parent_ids: Sequence[UUID], task: Task, composer: Composer, scratch: Prompt
    ) -> tuple[Prompt, ...]:
        """Return one prompt for each of these solutions.

        Raises:
            RequestError: `not_found`, or `invalid_request` for a solution of another task or of
                other data.
        """
        origins = await self._parents.origins(parent_ids)
        for parent_id in parent_ids:
            _check_origin(parent_id, origins.get(parent_id), task)
        written = await write_prompts(self._parents, composer, parent_ids)
        fallback = replace(scratch, fallback=_UNFIT)
        return tuple(
            _improve(one, written[one]) if one in written else fallback for one in parent_ids
        )

    def _draw(self, query: PromptQuery, rng: Random) -> Draw:
        temperature = query.temperature or self._defaults.temperature

        def draw_some(pool: Sequence[Candidate], count: int) -> list[Candidate]:
            return draw(pool, query.strategy, temperature, rng, count)

        return draw_some

    async def _candidates(self, scope: ParentScope, query: PromptQuery) -> tuple[Candidate, ...]:
        if query.strategy is Strategy.PREVIOUS_STEP:
            return await self._parents.of_step(scope, query.step)
        return without_duplicates(await self._parents.best(scope))

    def _scope(self, task: Task, query: PromptQuery) -> ParentScope:
        failed_too = query.failed_too
        of_all_runs = query.of_all_runs and query.strategy is not Strategy.PREVIOUS_STEP
        return ParentScope(
            task_id=task.card.id,
            data_digest=task.data_digest,
            run_id=None if of_all_runs else query.run_id,
            failed_too=self._defaults.failed_too if failed_too is None else failed_too,
        )

    def _composer(self, task: Task, query: PromptQuery) -> Composer:
        budget = query.budget or CharacterBudget(self._defaults.budget_characters)
        counter, limit = self._counter(budget)
        key = task.card.id, counter.name
        digest, levels = self._levels.get(key, ("", None))
        if levels is None or digest != task.data_digest:
            levels = BriefingLevels.of(self._briefings.levels(task), counter)
            self._levels[key] = task.data_digest, levels
        ceiling, has_gpu = self._defaults.ceiling, self._defaults.has_gpu
        rules = Rules.of(task.card, ceiling, query.wall_seconds, has_gpu=has_gpu)
        return Composer(counter, limit, rules, levels)

    def _counter(self, budget: Budget) -> tuple[TokenCounter, int]:
        match budget:
            case CharacterBudget():
                return _CHARACTERS, budget.characters
            case TokenBudget():
                return self._tokenizer(budget.tokenizer), budget.tokens
            case never:
                assert_never(never)

    def _tokenizer(self, name: str) -> TokenCounter:
        if name in self._counters:
            return self._counters[name]
        known = ", ".join(sorted(self._counters)) or "none"
        message = f"there is no such tokenizer; this server has: {known}"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)


def _improve(parent_id: UUID, messages: Messages) -> Prompt:
    return Prompt(PromptKind.IMPROVE, messages, parent_id)


def _check_origin(parent_id: UUID, origin: tuple[str, str] | None, task: Task) -> None:
    if origin is None:
        raise RequestError(ErrorKind.NOT_FOUND, f"there is no solution {parent_id}")
    task_id, data_digest = origin
    if task_id != task.card.id:
        message = f"the solution {parent_id} is one of another task"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)
    if data_digest != task.data_digest:
        message = f"the solution {parent_id} is not one on the task's present data"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)


def _missing(scope: ParentScope, query: PromptQuery) -> str:
    kind = "solution" if scope.failed_too else "valid solution"
    if query.strategy is Strategy.PREVIOUS_STEP:
        when = "with a step" if query.step is None else "of an earlier step"
        return f"this run has no {kind} {when} on the task's present data"
    whose = "this task" if query.of_all_runs else "this run"
    return f"{whose} has no {kind} on the task's present data"
