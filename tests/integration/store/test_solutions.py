from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from reward_server.errors import RequestError
from reward_server.model import ErrorKind
from reward_server.store.solutions.paging import SolutionFilter, SortOrder
from tests.integration.store.examples import FAILURE, SUBMISSION, add

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.store.queries import Store
    from reward_server.store.values import StoredSummary


async def every_page(store: Store, wanted: SolutionFilter) -> list[StoredSummary]:
    seen: list[StoredSummary] = []
    while True:
        page = await store.solutions(wanted)
        assert len(page.solutions) <= wanted.limit
        seen += page.solutions
        if page.next_cursor is None:
            return seen
        wanted = replace(wanted, cursor=page.next_cursor)


@pytest.mark.parametrize("limit", [1, 2, 3, 500])
@pytest.mark.parametrize("order", list(SortOrder))
async def test_pages_over_ties_show_every_line_once_and_in_order(
    store: Store, engine: AsyncEngine, order: SortOrder, limit: int
) -> None:
    added = {
        await add(store, reward=reward, duration_seconds=reward + 20)
        for reward in (0.1, 0.1 + 0.2, 0.3, 0.1, -10.0, 0.1, 0.3)
    }
    async with engine.connect() as connection:
        await connection.execute(
            text("UPDATE solutions SET created_at = date_trunc('day', now()) WHERE reward > 0.2")
        )
    lines = await every_page(store, SolutionFilter(order=order, limit=limit))
    keys = [
        {
            SortOrder.REWARD: (line.reward, line.solution_id),
            SortOrder.TIME: (line.created_at, line.solution_id),
            SortOrder.DURATION: (line.duration_seconds, line.solution_id),
        }[order]
        for line in lines
    ]
    assert keys == sorted(keys, reverse=True)
    assert len(lines) == len(added)
    assert {line.solution_id for line in lines} == added


async def test_a_solution_added_meanwhile_does_not_shift_pages(store: Store) -> None:
    added = {await add(store, reward=reward) for reward in (1.0, 2.0, 3.0, 4.0)}
    first = await store.solutions(SolutionFilter(limit=2))
    await add(store, reward=9.0)
    rest = await store.solutions(SolutionFilter(limit=2, cursor=first.next_cursor))
    assert {line.solution_id for line in first.solutions + rest.solutions} == added
    assert rest.next_cursor is None


async def test_lists_are_filtered(store: Store) -> None:
    one = await add(store, replace(SUBMISSION, task_id="a", run_id="r"))
    two = await add(store, replace(SUBMISSION, task_id="a", run_id="q"), failure=FAILURE)
    three = await add(store, replace(SUBMISSION, task_id="b", run_id="r"))

    async def found(**wanted: object) -> set[UUID]:
        page = await store.solutions(SolutionFilter(**wanted))  # type: ignore[arg-type]
        return {line.solution_id for line in page.solutions}

    assert await found() == {one, two, three}
    assert await found(task_id="a") == {one, two}
    assert await found(run_id="r") == {one, three}
    assert await found(task_id="a", valid=False) == {two}
    assert await found(task_id="a", run_id="r", valid=True) == {one}
    assert await found(task_id="a\x00") == set()


SOME_ID = "7f689f59-23c3-4194-808b-5306c386c0a0"


def encoded(*parts: object) -> str:
    return urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "!",
        "é",
        "A",
        "A" * 10_000,
        encoded(),
        encoded("reward", 1.0),
        encoded("reward", 1.0, "x"),
        encoded("reward", 1.0, 5),
        encoded("reward", "1.0", SOME_ID),
        encoded("reward", float("nan"), SOME_ID),
        encoded("reward", 10**400, SOME_ID),
        encoded("time", "2026-01-01T00:00:00+00:00", SOME_ID),
        urlsafe_b64encode(b"[" * 200).decode(),
        urlsafe_b64encode(b"5").decode(),
    ],
)
async def test_a_malformed_cursor_is_an_invalid_request(store: Store, cursor: str) -> None:
    with pytest.raises(RequestError) as caught:
        await store.solutions(SolutionFilter(cursor=cursor))
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


@pytest.mark.parametrize(
    "moment", ["x", 5, None, "2026-01-01", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00"]
)
async def test_a_malformed_time_is_an_invalid_request(store: Store, moment: object) -> None:
    cursor = encoded("time", moment, str(uuid4()))
    with pytest.raises(RequestError):
        await store.solutions(SolutionFilter(order=SortOrder.TIME, cursor=cursor))


@pytest.mark.parametrize("limit", [0, -1, 501])
async def test_a_limit_out_of_range_is_an_invalid_request(store: Store, limit: int) -> None:
    with pytest.raises(RequestError):
        await store.solutions(SolutionFilter(limit=limit))


async def child(store: Store, parent: UUID, reward: float = 0.5) -> UUID:
    return await add(store, replace(SUBMISSION, parent_id=str(parent)), reward=reward)


async def test_a_solution_knows_its_ancestors_and_children(store: Store) -> None:
    root = await add(store, reward=0.1)
    middle = await child(store, root, 0.2)
    leaf = await child(store, middle, 0.3)
    better = await child(store, middle, 0.4)
    detail = await store.solution(middle)
    assert detail is not None
    assert detail.answer.solution_id == middle
    assert [(one.solution_id, one.reward) for one in detail.ancestors] == [(root, 0.1)]
    assert [one.solution_id for one in detail.children] == [better, leaf]
    of_leaf = await store.solution(leaf)
    assert of_leaf is not None
    assert [one.solution_id for one in of_leaf.ancestors] == [middle, root]


async def test_a_cyclic_lineage_ends(store: Store, engine: AsyncEngine) -> None:
    first = await add(store)
    second = await child(store, first)
    async with engine.connect() as connection:
        await connection.execute(
            text("UPDATE solutions SET parent_id = :second WHERE id = :first"),
            {"first": first, "second": second},
        )
    detail = await store.solution(first)
    assert detail is not None
    assert [one.solution_id for one in detail.ancestors] == [second]
    assert [one.solution_id for one in detail.children] == [second]


async def test_a_solution_that_names_itself_has_no_relatives(
    store: Store, engine: AsyncEngine
) -> None:
    only = await add(store)
    async with engine.connect() as connection:
        await connection.execute(text("UPDATE solutions SET parent_id = id"))
    detail = await store.solution(only)
    assert detail is not None
    assert (detail.ancestors, detail.children) == ((), ())


async def test_an_unknown_solution_is_absent(store: Store) -> None:
    known = await add(store)
    assert await store.solution(uuid4()) is None
    assert await store.known_solutions({known, uuid4()}) == {known}
    assert await store.answer(uuid4()) is None
    assert await store.job(uuid4()) is None
