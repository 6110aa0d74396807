"""Which parents are drawn, how prompts fit a budget, and when there is no parent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reward_server.errors import RequestError
from reward_server.model import PromptKind
from reward_server.prompts.prompt_types import CharacterBudget, PromptQuery, Strategy, TokenBudget
from tests.conftest import ROOT
from tests.integration.prompts.conftest import empty
from tests.integration.tasks import tiny

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.prompts.chat_tokens import ChatTokenCounter
    from reward_server.prompts.service import PromptService
    from reward_server.store.queries import Store
    from reward_server.tasks.registry import Registry

from tests.integration.prompts.stored import OTHER, QUERY, StoredSolution, keep


async def test_half_of_many_prompts_improve_and_the_seed_says_which(
    service: PromptService, registry: Registry, store: Store
) -> None:
    await keep(store, registry, StoredSolution())
    query = replace(QUERY, count=1000, improve_fraction=0.5, seed=7)
    kinds = [prompt.kind for prompt in await service.create_prompts(query)]
    assert 440 < kinds.count(PromptKind.IMPROVE) < 560
    again = [prompt.kind for prompt in await service.create_prompts(replace(query, seed=8))]
    assert kinds != again
    unseeded = [await service.create_prompts(replace(query, seed=None)) for _ in range(2)]
    assert unseeded[0] != unseeded[1]


async def parents_of(service: PromptService, query: PromptQuery) -> Counter[UUID | None]:
    return Counter(prompt.parent_id for prompt in await service.create_prompts(query))


async def test_the_previous_step_is_the_latest_that_has_a_parent(
    service: PromptService, registry: Registry, store: Store
) -> None:
    one = {await keep(store, registry, StoredSolution(step=1)) for _ in range(3)}
    await keep(store, registry, StoredSolution(step=2, valid=False))
    late = await keep(store, registry, StoredSolution(step=4))
    await keep(store, registry, StoredSolution(step=None, reward=9.0))
    query = replace(QUERY, count=64)
    assert set(await parents_of(service, query)) == {late}
    assert set(await parents_of(service, replace(query, step=4))) == one
    found = await service.create_prompts(replace(query, step=1))
    assert {prompt.fallback for prompt in found} == {
        "this run has no valid solution of an earlier step on the task's present data"
    }


async def test_the_best_are_drawn_each_program_once(
    service: PromptService, registry: Registry, store: Store
) -> None:
    ids = {}
    for number in range(12):
        ids[number] = await keep(
            store, registry, StoredSolution(reward=number, code=f"print({number})")
        )
    await keep(store, registry, StoredSolution(reward=10.5, code="print(11)"))
    query = replace(QUERY, count=200, strategy=Strategy.BEST)
    assert set(await parents_of(service, query)) == {ids[number] for number in range(4, 12)}


async def test_softmax_prefers_the_better_by_its_temperature(
    service: PromptService, registry: Registry, store: Store
) -> None:
    low = await keep(store, registry, StoredSolution(reward=0.0, code="print(0)"))
    high = await keep(store, registry, StoredSolution(reward=1.0, code="print(1)"))
    query = replace(QUERY, count=400, strategy=Strategy.SOFTMAX)
    cold = await parents_of(service, replace(query, temperature=0.01))
    assert cold == {high: 400}
    even = await parents_of(service, replace(query, temperature=1e6))
    assert 150 < even[low] < 250
    warm = await parents_of(service, replace(query, temperature=1.0))
    assert 70 < warm[low] < 150  # 27 % by the weights


async def test_diverse_goes_round_the_families(
    service: PromptService, registry: Registry, store: Store
) -> None:
    imports = ("lightgbm", "xgboost", "torch")
    best = {
        await keep(store, registry, StoredSolution(reward=0.1, code=f"import {name}\n"))
        for name in imports
    }
    for number in range(20):
        code = f"import lightgbm\nprint({number})"
        await keep(store, registry, StoredSolution(reward=0.05, code=code))
    query = replace(QUERY, count=3, strategy=Strategy.DIVERSE)
    assert set(await parents_of(service, query)) == best


async def test_other_runs_only_if_asked(
    service: PromptService, registry: Registry, store: Store
) -> None:
    other = await keep(store, registry, StoredSolution(run_id="q"))
    query = replace(QUERY, strategy=Strategy.BEST)
    found = await service.create_prompts(query)
    assert {prompt.fallback for prompt in found} == {
        "this run has no valid solution on the task's present data"
    }
    assert set(await parents_of(service, replace(query, of_all_runs=True))) == {other}


async def test_long_programs_are_not_chosen_and_never_cut(
    service: PromptService, registry: Registry, store: Store, engine: AsyncEngine
) -> None:
    short = await keep(store, registry, StoredSolution(code="print('short')\n"))
    for number in range(20):
        code = f"# {number}\n" + "x = 1\n" * 500 * (1 + number)
        await keep(store, registry, StoredSolution(code=code, reward=2.0))
    budget = CharacterBudget(3000)
    for strategy in Strategy:
        query = replace(QUERY, count=32, strategy=strategy, budget=budget)
        assert set(await parents_of(service, query)) == {short}
    await empty(engine)
    await keep(store, registry, StoredSolution(code="x = 1\n" * 1000))
    for prompt in await service.create_prompts(replace(QUERY, budget=budget)):
        assert (
            prompt.fallback == "no solution that could be chosen fits the budget, or can be shown"
        )


async def test_solutions_from_before_lengths_were_kept_are_parents(
    service: PromptService, registry: Registry, store: Store, engine: AsyncEngine
) -> None:
    old = await keep(store, registry, StoredSolution())
    await keep(store, registry, StoredSolution(code="x = 1\n" * 5000, reward=2.0))
    async with engine.connect() as connection:
        await connection.exec_driver_sql("UPDATE solutions SET code_chars = NULL, family = NULL")
    for strategy in Strategy:
        assert set(await parents_of(service, replace(QUERY, strategy=strategy))) == {old}


async def test_a_budget_too_small_says_what_is_needed(service: PromptService, store: Store) -> None:
    del store
    with pytest.raises(RequestError, match="needs") as caught:
        await service.create_prompts(replace(QUERY, budget=CharacterBudget(10)))
    needed = int(caught.value.message.rpartition(" ")[2].replace(",", ""))
    just = CharacterBudget(needed)
    assert len(await service.create_prompts(replace(QUERY, budget=just))) == 8
    with pytest.raises(RequestError):
        await service.create_prompts(replace(QUERY, budget=CharacterBudget(needed - 1)))


@pytest.mark.parametrize("name", ["spooky-author-identification", "random-acts-of-pizza.folds"])
async def test_the_papers_1024_tokens_fit_a_real_program(
    service: PromptService,
    registry: Registry,
    store: Store,
    tokenizer: ChatTokenCounter,
    name: str,
) -> None:
    task_id = name.partition(".")[0]
    code = (ROOT / "tests" / "integration" / "api" / "solutions" / f"{name}.py").read_text()
    output = "".join(f"epoch {at} training loss {1 / (at + 1):.4f}\n" for at in range(200))
    await keep(store, registry, StoredSolution(task_id=task_id, code=code, output=output))
    query = replace(QUERY, task_id=task_id, count=64, improve_fraction=0.5)
    budget = TokenBudget(1024, "bpe")
    made = await service.create_prompts(replace(query, budget=budget))
    assert {prompt.kind for prompt in made} == {PromptKind.SCRATCH, PromptKind.IMPROVE}
    sizes = tokenizer.measure([prompt.messages for prompt in made])
    assert max(sizes) <= 1024
    assert min(sizes) > 700
    improving = next(p for p in made if p.kind is PromptKind.IMPROVE).messages[-1].content
    assert code in improving
    assert "lines left out]" in improving
    wide = await service.create_prompts(replace(query, budget=TokenBudget(4096, "bpe")))
    assert tokenizer.measure([wide[0].messages])[0] > 1024


async def test_the_prompt_states_the_time_limit_of_the_run(
    service: PromptService, store: Store
) -> None:
    del store
    prompt = (await service.create_prompts(replace(QUERY, wall_seconds=7.5)))[0]
    assert "7.5 seconds" in prompt.messages[0].content
    prompt = (await service.create_prompts(replace(QUERY, wall_seconds=9999.0)))[0]
    assert "60 seconds" in prompt.messages[0].content


async def test_an_unknown_tokenizer_or_task_is_the_callers_fault(
    service: PromptService, store: Store
) -> None:
    del store
    with pytest.raises(RequestError, match="this server has: bpe"):
        await service.create_prompts(replace(QUERY, budget=TokenBudget(1024, "x")))
    with pytest.raises(RequestError, match="no such task"):
        await service.create_prompts(replace(QUERY, task_id="x"))


async def test_named_parents_are_used_as_they_are_or_refused(
    service: PromptService, store: Store, registry: Registry
) -> None:
    fine = await keep(store, registry, StoredSolution(run_id="of somebody else"))
    failed = await keep(store, registry, StoredSolution(valid=False))
    marked = await keep(store, registry, StoredSolution(code="print('<|im_end|>')"))
    empty_code = await keep(store, registry, StoredSolution(code=""))
    old = await keep(store, registry, StoredSolution(is_present=False))
    foreign = await keep(store, registry, StoredSolution(task_id=OTHER))
    named = (failed, marked, fine, empty_code)
    made = await service.create_prompts(PromptQuery(tiny.ID, "r", 1, parent_ids=named))
    assert [prompt.parent_id for prompt in made] == [failed, None, fine, None]
    assert [prompt.fallback is None for prompt in made] == [True, False, True, False]
    for wrong, said in [(old, "present data"), (foreign, "another task")]:
        with pytest.raises(RequestError, match=said):
            await service.create_prompts(PromptQuery(tiny.ID, "r", 1, parent_ids=(fine, wrong)))
