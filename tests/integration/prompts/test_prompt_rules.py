"""Whatever the store holds, prompts obey their rules: seed, budget, lineage, validity."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward_server.errors import RequestError
from reward_server.extract.markdown import python_block
from reward_server.model import PromptKind
from reward_server.prompts.prompt_types import CharacterBudget, PromptQuery, Strategy, TokenBudget
from reward_server.prompts.token_counters import CharacterCounter
from reward_server.store.engine import make_engine
from reward_server.store.queries import Store
from tests.integration.prompts.conftest import empty
from tests.integration.tasks import tiny
from tests.support.bpe import SPECIALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.prompts.chat_tokens import ChatTokenCounter
    from reward_server.prompts.prompt_types import Budget, Prompt
    from reward_server.prompts.service import PromptService
    from reward_server.tasks.registry import Registry

from tests.integration.prompts.stored import OTHER, QUERY, StoredSolution, keep

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
        StoredSolution,
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
    st.just(QUERY),
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
@given(content=solutions, query=requests)
def test_any_store_and_request_keep_the_rules(
    own: OwnLoopService,
    tokenizer: ChatTokenCounter,
    content: list[StoredSolution],
    query: PromptQuery,
) -> None:
    stored = own.fill(content)
    try:
        made = own.prompts(query)
    except RequestError as refused:
        message = refused.message
        made = ()
    if not made:
        assert query.budget is not None
        assert "too small" in message
        return
    assert made == own.prompts(query)
    assert len(made) == query.count
    rng = Random(query.seed)  # noqa: S311
    drawn = [rng.random() < query.improve_fraction for _ in made]
    allowed = eligible(stored, query)
    for prompt, improves in zip(made, drawn, strict=True):
        check_size(prompt, query.budget, tokenizer)
        assert (prompt.kind is PromptKind.IMPROVE or prompt.fallback is not None) == improves
        assert (prompt.parent_id is not None) == (prompt.kind is PromptKind.IMPROVE)
        if prompt.parent_id is None:
            continue
        assert prompt.parent_id in allowed
        code = stored[prompt.parent_id].code.replace("\ud800", "\ufffd")
        block = python_block(prompt.messages[-1].content.split("\n"))
        assert block is not None
        assert block.code == code.removesuffix("\n")


class OwnLoopService:
    """A service with its own event loop, for examples that hypothesis draws outside of any."""

    def __init__(
        self, url: str, registry: Registry, make_service: Callable[[AsyncEngine], PromptService]
    ) -> None:
        self._runner = asyncio.Runner()
        self._engine = make_engine(url)
        self._registry = registry
        self._service = make_service(self._engine)

    def fill(self, content: list[StoredSolution]) -> dict[UUID, StoredSolution]:
        async def keep_all() -> dict[UUID, StoredSolution]:
            await empty(self._engine)
            store = Store(self._engine)
            return {await keep(store, self._registry, kept): kept for kept in content}

        return self._runner.run(keep_all())

    def prompts(self, query: PromptQuery) -> tuple[Prompt, ...]:
        return self._runner.run(self._service.create_prompts(query))

    def close(self) -> None:
        self._runner.run(self._engine.dispose())
        self._runner.close()


@pytest.fixture
def own(
    engine: AsyncEngine,
    database_url: str,
    registry: Registry,
    make_service: Callable[[AsyncEngine], PromptService],
) -> Iterator[OwnLoopService]:
    del engine  # it has brought the schema up to date
    own = OwnLoopService(database_url, registry, make_service)
    yield own
    own.close()


def eligible(stored: dict[UUID, StoredSolution], query: PromptQuery) -> set[UUID]:
    """Return which solutions may be parents, computed independently of the SQL queries."""
    is_step = query.strategy is Strategy.PREVIOUS_STEP
    found = {
        solution_id: kept
        for solution_id, kept in stored.items()
        if kept.task_id == query.task_id
        and kept.is_present
        and (kept.valid or query.failed_too)
        and (kept.run_id == query.run_id or (query.of_all_runs and not is_step))
    }
    if not is_step:
        return set(found)
    before = [
        kept.step
        for kept in found.values()
        if kept.step is not None and (query.step is None or kept.step < query.step)
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
