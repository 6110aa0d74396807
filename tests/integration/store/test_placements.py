from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind, Marker, MarkerPlacement, MarkerPlacementKey, Milestone
from reward_server.store.engine import make_engine
from reward_server.store.queries import Store

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

KEY = MarkerPlacementKey("a" * 64, "insert", "some/model", 1)
SAID = MarkerPlacement(
    (Marker(3, 0, Milestone.LOADED_DATA), Marker(70_000, 4, Milestone.TRAINED_MODEL)), "left out: 1"
)


async def test_a_stored_placement_is_found_and_never_changes(engine: AsyncEngine) -> None:
    store = Store(engine)
    assert await store.placement(KEY) is None
    await store.keep_placement(KEY, SAID)
    await store.keep_placement(KEY, MarkerPlacement(()))
    assert await store.placement(KEY) == SAID


async def test_a_useless_answer_of_the_model_is_stored_too(engine: AsyncEngine) -> None:
    key, empty = replace(KEY, mode="rewrite"), MarkerPlacement((), "was of no help")
    await Store(engine).keep_placement(key, empty)
    assert await Store(engine).placement(key) == empty


@pytest.mark.parametrize(
    "other",
    [
        replace(KEY, program_digest="b" * 64),
        replace(KEY, model="other/model"),
        replace(KEY, prompt_version=2),
    ],
)
async def test_another_key_is_another_placement(
    engine: AsyncEngine, other: MarkerPlacementKey
) -> None:
    await Store(engine).keep_placement(KEY, SAID)
    assert await Store(engine).placement(other) is None


async def test_a_placement_without_a_database_is_a_store_error() -> None:
    engine = make_engine("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(InfrastructureError) as caught:
        await Store(engine).placement(KEY)
    assert caught.value.kind is ErrorKind.STORE_ERROR
    await engine.dispose()
