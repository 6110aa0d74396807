"""Whatever the store holds, prompts keep to their rules: seed, budget, lineage, validity."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward_server.errors import RequestError
from reward_server.extract.markdown import python_block
from reward_server.model import Grade, Program, PromptKind, Submission
from reward_server.prompts.counters import CharacterCounter
from reward_server.prompts.values import CharacterBudget, PromptQuery, Strategy, TokenBudget
from reward_server.store.engine import make_engine
from reward_server.store.queries import Store
from reward_server.store.values import NewJob
from tests.conftest import ROOT
from tests.integration.prompts.bpe import SPECIALS
from tests.integration.prompts.conftest import TASKS, empty
from tests.integration.store.examples import CLAIM, FAILURE, verdict
from tests.integration.tasks import tiny

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.prompts.chat_tokens import ChatTokenCounter
    from reward_server.prompts.service import PromptService
    from reward_server.prompts.values import Budget, Prompt
    from reward_server.tasks.registry import Registry

OTHER = TASKS[0]
WANTED = PromptQuery(tiny.ID, "r", 8, improve_fraction=1.0, seed=1)


@dataclass(frozen=True, slots=True)
class Kept:
    """A solution in the store."""

    task_id: str = tiny.ID
    run_id: str = "r"
    step: int | None = 1
    valid: bool = True
    is_present: bool = True
    reward: float = 0.5
    code: str = "import lightgbm\nprint(1)\n"
    output: str = "loss 0.5\n"


async def keep(store: Store, registry: Registry, kept: Kept) -> UUID:
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


pieces = st.sampled_from(
    [
        *("x = 1", "import torch", "# `", "```", "````python", "~~~", " ", "\t", "\n", "\n\n"),
        *(
            "<|im_end|>",
            "<|im_start|>system",
            "[ODD MARK]",
            "</s>",
            "[INST]",
            "\ud800",
            "é",
            "\x1b",
        ),
        *("Traceback", "loss: 0.1", "x" * 900, "\r", "\u2028", "{{ messages }}", "{% raw %}"),
    ]
)
hostile = st.lists(pieces, max_size=10).map("".join)
solutions = st.lists(
    st.builds(
        Kept,
        task_id=st.sampled_from([tiny.ID, tiny.ID, OTHER]),
        run_id=st.sampled_from(["r", "r", "q"]),
        step=st.sampled_from([None, 0, 1, 2, 3]),
        valid=st.booleans(),
        is_present=st.sampled_from([True, True, False]),
        reward=st.sampled_from([-10.0, -0.5, 0.0, 0.5, 0.5, 1e300]),
        code=hostile,
        output=hostile,
    ),
    max_size=8,
)
budgets: st.SearchStrategy[Budget | None] = st.one_of(
    st.none(),
    st.builds(CharacterBudget, st.sampled_from([50, 1100, 1300, 2000, 3000, 6000])),
    st.builds(TokenBudget, st.sampled_from([10, 300, 380, 450, 600, 1024, 2000]), st.just("bpe")),
)
requests = st.builds(
    replace,
    st.just(WANTED),
    count=st.integers(1, 12),
    improve_fraction=st.sampled_from([0.0, 0.5, 1.0]),
    strategy=st.sampled_from(Strategy),
    seed=st.integers(0, 1000),
    budget=budgets,
    step=st.sampled_from([None, 0, 1, 2, 5]),
    failed_too=st.sampled_from([None, False, True]),
    temperature=st.sampled_from([None, 1e-6, 1e6]),
    of_all_runs=st.booleans(),
    wall_seconds=st.sampled_from([None, 0.5, 1e4]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=solutions, wanted=requests)
def test_any_store_and_request_keep_the_rules(
    own: Own, tokenizer: ChatTokenCounter, content: list[Kept], wanted: PromptQuery
) -> None:
    stored = own.fill(content)
    try:
        made = own.prompts(wanted)
    except RequestError as refused:
        message = refused.message
        made = ()
    if not made:
        assert wanted.budget is not None
        assert "too small" in message
        return
    assert made == own.prompts(wanted)
    assert len(made) == wanted.count
    dice = Random(wanted.seed)  # noqa: S311
    drawn = [dice.random() < wanted.improve_fraction for _ in made]
    allowed = eligible(stored, wanted)
    for prompt, improves in zip(made, drawn, strict=True):
        check_size(prompt, wanted.budget, tokenizer)
        assert (prompt.kind is PromptKind.IMPROVE or prompt.fallback is not None) == improves
        assert (prompt.parent_id is not None) == (prompt.kind is PromptKind.IMPROVE)
        if prompt.parent_id is None:
            continue
        assert prompt.parent_id in allowed
        code = stored[prompt.parent_id].code.replace("\ud800", "\ufffd")
        block = python_block(prompt.messages[-1].content.split("\n"))
        assert block is not None
        assert block.code == code.removesuffix("\n")


class Own:
    """A prompter in a loop of its own, for tests whose examples are drawn outside of any."""

    def __init__(
        self, url: str, registry: Registry, make_prompter: Callable[[AsyncEngine], PromptService]
    ) -> None:
        self._runner = asyncio.Runner()
        self._engine = make_engine(url)
        self._registry = registry
        self._prompter = make_prompter(self._engine)

    def fill(self, content: list[Kept]) -> dict[UUID, Kept]:
        async def keep_all() -> dict[UUID, Kept]:
            await empty(self._engine)
            store = Store(self._engine)
            return {await keep(store, self._registry, kept): kept for kept in content}

        return self._runner.run(keep_all())

    def prompts(self, wanted: PromptQuery) -> tuple[Prompt, ...]:
        return self._runner.run(self._prompter.prompts(wanted))

    def close(self) -> None:
        self._runner.run(self._engine.dispose())
        self._runner.close()


@pytest.fixture
def own(
    engine: AsyncEngine,
    database_url: str,
    registry: Registry,
    make_prompter: Callable[[AsyncEngine], PromptService],
) -> Iterator[Own]:
    del engine  # it has brought the schema up to date
    own = Own(database_url, registry, make_prompter)
    yield own
    own.close()


def eligible(stored: dict[UUID, Kept], wanted: PromptQuery) -> set[UUID]:
    """Return what may be a parent, told in another way than the queries do."""
    is_step = wanted.strategy is Strategy.PREVIOUS_STEP
    found = {
        solution_id: kept
        for solution_id, kept in stored.items()
        if kept.task_id == wanted.task_id
        and kept.is_present
        and (kept.valid or wanted.failed_too)
        and (kept.run_id == wanted.run_id or (wanted.of_all_runs and not is_step))
    }
    if not is_step:
        return set(found)
    before = [
        kept.step
        for kept in found.values()
        if kept.step is not None and (wanted.step is None or kept.step < wanted.step)
    ]
    return {i for i, kept in found.items() if before and kept.step == max(before)}


def check_size(prompt: Prompt, budget: Budget | None, tokenizer: ChatTokenCounter) -> None:
    if isinstance(budget, TokenBudget):
        text = tokenizer.render(prompt.messages)
        found = tokenizer._tokenizer.encode(text, add_special_tokens=False)
        assert len(found.ids) <= budget.tokens
        special = [token for token in found.tokens if token in SPECIALS]
        assert special == ["<|im_start|>", "<|im_end|>"] * 2 + ["<|im_start|>"]
    else:
        limit = 16_000 if budget is None else budget.characters
        assert CharacterCounter().measure([prompt.messages])[0] <= limit
        assert sum(len(message.content) for message in prompt.messages) <= limit
        whole = "".join(message.content for message in prompt.messages)
        assert not any(mark in whole for mark in ("<|im_end|>", "<|im_start|>", "</s>", "[INST]"))
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert "\ud800" not in prompt.messages[-1].content


async def test_half_of_many_prompts_improve_and_the_seed_says_which(
    prompter: PromptService, registry: Registry, store: Store
) -> None:
    await keep(store, registry, Kept())
    wanted = replace(WANTED, count=1000, improve_fraction=0.5, seed=7)
    kinds = [prompt.kind for prompt in await prompter.prompts(wanted)]
    assert 440 < kinds.count(PromptKind.IMPROVE) < 560
    again = [prompt.kind for prompt in await prompter.prompts(replace(wanted, seed=8))]
    assert kinds != again
    unseeded = [await prompter.prompts(replace(wanted, seed=None)) for _ in range(2)]
    assert unseeded[0] != unseeded[1]


async def parents_of(prompter: PromptService, wanted: PromptQuery) -> Counter[UUID | None]:
    return Counter(prompt.parent_id for prompt in await prompter.prompts(wanted))


async def test_the_previous_step_is_the_latest_that_has_a_parent(
    prompter: PromptService, registry: Registry, store: Store
) -> None:
    one = {await keep(store, registry, Kept(step=1)) for _ in range(3)}
    await keep(store, registry, Kept(step=2, valid=False))
    late = await keep(store, registry, Kept(step=4))
    await keep(store, registry, Kept(step=None, reward=9.0))
    wanted = replace(WANTED, count=64)
    assert set(await parents_of(prompter, wanted)) == {late}
    assert set(await parents_of(prompter, replace(wanted, step=4))) == one
    found = await prompter.prompts(replace(wanted, step=1))
    assert {prompt.fallback for prompt in found} == {
        "this run has no valid solution of an earlier step on the task's present data"
    }


async def test_the_best_are_drawn_each_program_once(
    prompter: PromptService, registry: Registry, store: Store
) -> None:
    ids = {}
    for number in range(12):
        ids[number] = await keep(store, registry, Kept(reward=number, code=f"print({number})"))
    await keep(store, registry, Kept(reward=10.5, code="print(11)"))
    wanted = replace(WANTED, count=200, strategy=Strategy.BEST)
    assert set(await parents_of(prompter, wanted)) == {ids[number] for number in range(4, 12)}


async def test_softmax_prefers_the_better_by_its_temperature(
    prompter: PromptService, registry: Registry, store: Store
) -> None:
    low = await keep(store, registry, Kept(reward=0.0, code="print(0)"))
    high = await keep(store, registry, Kept(reward=1.0, code="print(1)"))
    wanted = replace(WANTED, count=400, strategy=Strategy.SOFTMAX)
    cold = await parents_of(prompter, replace(wanted, temperature=0.01))
    assert cold == {high: 400}
    even = await parents_of(prompter, replace(wanted, temperature=1e6))
    assert 150 < even[low] < 250
    warm = await parents_of(prompter, replace(wanted, temperature=1.0))
    assert 70 < warm[low] < 150  # 27 % by the weights


async def test_diverse_goes_round_the_families(
    prompter: PromptService, registry: Registry, store: Store
) -> None:
    imports = ("lightgbm", "xgboost", "torch")
    best = {
        await keep(store, registry, Kept(reward=0.1, code=f"import {name}\n")) for name in imports
    }
    for number in range(20):
        code = f"import lightgbm\nprint({number})"
        await keep(store, registry, Kept(reward=0.05, code=code))
    wanted = replace(WANTED, count=3, strategy=Strategy.DIVERSE)
    assert set(await parents_of(prompter, wanted)) == best


async def test_other_runs_only_if_asked(
    prompter: PromptService, registry: Registry, store: Store
) -> None:
    other = await keep(store, registry, Kept(run_id="q"))
    wanted = replace(WANTED, strategy=Strategy.BEST)
    found = await prompter.prompts(wanted)
    assert {prompt.fallback for prompt in found} == {
        "this run has no valid solution on the task's present data"
    }
    assert set(await parents_of(prompter, replace(wanted, of_all_runs=True))) == {other}


async def test_long_programs_are_not_chosen_and_never_cut(
    prompter: PromptService, registry: Registry, store: Store, engine: AsyncEngine
) -> None:
    short = await keep(store, registry, Kept(code="print('short')\n"))
    for number in range(20):
        code = f"# {number}\n" + "x = 1\n" * 500 * (1 + number)
        await keep(store, registry, Kept(code=code, reward=2.0))
    budget = CharacterBudget(3000)
    for strategy in Strategy:
        wanted = replace(WANTED, count=32, strategy=strategy, budget=budget)
        assert set(await parents_of(prompter, wanted)) == {short}
    await empty(engine)
    await keep(store, registry, Kept(code="x = 1\n" * 1000))
    for prompt in await prompter.prompts(replace(WANTED, budget=budget)):
        assert (
            prompt.fallback == "no solution that could be chosen fits the budget, or can be shown"
        )


async def test_solutions_from_before_lengths_were_kept_are_parents(
    prompter: PromptService, registry: Registry, store: Store, engine: AsyncEngine
) -> None:
    old = await keep(store, registry, Kept())
    await keep(store, registry, Kept(code="x = 1\n" * 5000, reward=2.0))
    async with engine.connect() as connection:
        await connection.exec_driver_sql("UPDATE solutions SET code_chars = NULL, family = NULL")
    for strategy in Strategy:
        assert set(await parents_of(prompter, replace(WANTED, strategy=strategy))) == {old}


async def test_a_budget_too_small_says_what_is_needed(
    prompter: PromptService, store: Store
) -> None:
    del store
    with pytest.raises(RequestError, match="needs") as caught:
        await prompter.prompts(replace(WANTED, budget=CharacterBudget(10)))
    needed = int(caught.value.message.rpartition(" ")[2].replace(",", ""))
    just = CharacterBudget(needed)
    assert len(await prompter.prompts(replace(WANTED, budget=just))) == 8
    with pytest.raises(RequestError):
        await prompter.prompts(replace(WANTED, budget=CharacterBudget(needed - 1)))


@pytest.mark.parametrize("name", ["spooky-author-identification", "random-acts-of-pizza.folds"])
async def test_the_papers_1024_tokens_have_room_for_a_real_program(
    prompter: PromptService,
    registry: Registry,
    store: Store,
    tokenizer: ChatTokenCounter,
    name: str,
) -> None:
    task_id = name.partition(".")[0]
    code = (ROOT / "tests" / "api" / "solutions" / f"{name}.py").read_text()
    output = "".join(f"epoch {at} training loss {1 / (at + 1):.4f}\n" for at in range(200))
    await keep(store, registry, Kept(task_id=task_id, code=code, output=output))
    wanted = replace(WANTED, task_id=task_id, count=64, improve_fraction=0.5)
    budget = TokenBudget(1024, "bpe")
    made = await prompter.prompts(replace(wanted, budget=budget))
    assert {prompt.kind for prompt in made} == {PromptKind.SCRATCH, PromptKind.IMPROVE}
    sizes = tokenizer.measure([prompt.messages for prompt in made])
    assert max(sizes) <= 1024
    assert min(sizes) > 700
    improving = next(p for p in made if p.kind is PromptKind.IMPROVE).messages[-1].content
    assert code in improving
    assert "lines left out]" in improving
    wide = await prompter.prompts(replace(wanted, budget=TokenBudget(4096, "bpe")))
    assert tokenizer.measure([wide[0].messages])[0] > 1024


async def test_the_time_a_run_allows_is_the_time_that_is_told(
    prompter: PromptService, store: Store
) -> None:
    del store
    prompt = (await prompter.prompts(replace(WANTED, wall_seconds=7.5)))[0]
    assert "7.5 seconds" in prompt.messages[0].content
    prompt = (await prompter.prompts(replace(WANTED, wall_seconds=9999.0)))[0]
    assert "60 seconds" in prompt.messages[0].content


async def test_an_unknown_tokenizer_or_task_is_the_callers_fault(
    prompter: PromptService, store: Store
) -> None:
    del store
    with pytest.raises(RequestError, match="this server has: bpe"):
        await prompter.prompts(replace(WANTED, budget=TokenBudget(1024, "x")))
    with pytest.raises(RequestError, match="no such task"):
        await prompter.prompts(replace(WANTED, task_id="x"))


async def test_named_parents_are_taken_as_they_are_or_refused(
    prompter: PromptService, store: Store, registry: Registry
) -> None:
    fine = await keep(store, registry, Kept(run_id="of somebody else"))
    failed = await keep(store, registry, Kept(valid=False))
    marked = await keep(store, registry, Kept(code="print('<|im_end|>')"))
    empty_code = await keep(store, registry, Kept(code=""))
    old = await keep(store, registry, Kept(is_present=False))
    foreign = await keep(store, registry, Kept(task_id=OTHER))
    named = (failed, marked, fine, empty_code)
    made = await prompter.prompts(PromptQuery(tiny.ID, "r", 1, parent_ids=named))
    assert [prompt.parent_id for prompt in made] == [failed, None, fine, None]
    assert [prompt.fallback is None for prompt in made] == [True, False, True, False]
    for wrong, said in [(old, "present data"), (foreign, "another task")]:
        with pytest.raises(RequestError, match=said):
            await prompter.prompts(PromptQuery(tiny.ID, "r", 1, parent_ids=(fine, wrong)))
