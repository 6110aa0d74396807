"""Rewards under other schemes are stored beside the answers, which never change."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind, Milestone, Reward
from reward_server.rescoring import TaskTally, rescore
from reward_server.reward.normalised import NormalisedScheme
from reward_server.reward.paper import PaperScheme
from reward_server.store.engine import downgrade, upgrade
from reward_server.store.values import KeptReward, OutcomeFilter, StoredOutcome
from reward_server.tasks.base import Source
from reward_server.tasks.manifest import Manifest, write_manifest
from reward_server.tasks.registry import Registry
from tests.conftest import COMMAND, ROOT
from tests.integration.store.examples import FAILURE, SUBMISSION, add

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.reward.base import Scheme
    from reward_server.store.queries import Store
    from reward_server.store.values import SolutionDetail

ALL = OutcomeFilter()
PIZZA = "random-acts-of-pizza"  # gold at 0.97908, here with a sample that scores 0.5
OF_PIZZA = replace(SUBMISSION, task_id=PIZZA)


def prepared(data_dir: Path, data_digest: str = "d1") -> Registry:
    """Write a manifest as if the task's data had been prepared."""
    folder = data_dir / PIZZA / "prepared"
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    write_manifest(folder, Manifest(1, PIZZA, Source.TWIN, now, data_digest, {}, sample_score=0.5))
    return Registry(data_dir)


async def found(store: Store, solution_id: UUID) -> SolutionDetail:
    detail = await store.solution(solution_id)
    assert detail is not None
    return detail


async def kept(store: Store, solution_id: UUID) -> dict[str, tuple[int, float]]:
    rewards = (await found(store, solution_id)).rewards
    return {reward.scheme: (reward.scheme_version, reward.value) for reward in rewards}


async def tallied(
    store: Store, registry: Registry, scheme: Scheme, wanted: OutcomeFilter = ALL
) -> Mapping[str, TaskTally]:
    pages = [tallies async for tallies in rescore(store, registry, scheme, wanted)]
    return pages[-1] if pages else {}


async def test_a_reward_is_kept_once_and_replaced_when_it_changes(store: Store) -> None:
    solution_id = await add(store)
    answer = (await found(store, solution_id)).answer
    await store.keep_rewards("normalised", 1, {solution_id: 0.25})
    (first,) = (await found(store, solution_id)).rewards
    await store.keep_rewards("normalised", 1, {solution_id: 0.25})
    assert (await found(store, solution_id)).rewards == (first,)
    await store.keep_rewards("normalised", 1, {solution_id: 0.5})
    (second,) = (await found(store, solution_id)).rewards
    assert (first.value, second.value) == (0.25, 0.5)
    assert second.created_at > first.created_at
    assert (await found(store, solution_id)).answer == answer


async def test_the_newest_version_of_each_scheme_is_shown(
    store: Store, engine: AsyncEngine
) -> None:
    solution_id = await add(store)
    for scheme, version, value in (("b", 2, 0.2), ("a", 1, 0.3), ("b", 10, 0.4)):
        await store.keep_rewards(scheme, version, {solution_id: value})
    assert await kept(store, solution_id) == {"a": (1, 0.3), "b": (10, 0.4)}
    async with engine.connect() as connection:
        rows = await connection.execute(text("SELECT count(*) FROM rewards"))
        assert rows.scalar_one() == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
async def test_a_page_is_kept_as_a_whole_or_not_at_all(store: Store, value: float) -> None:
    one, other = await add(store), await add(store)
    with pytest.raises(InfrastructureError) as caught:
        await store.keep_rewards("normalised", 1, {one: 0.5, other: value})
    assert caught.value.kind is ErrorKind.STORE_ERROR
    assert (await found(store, one)).rewards == ()
    with pytest.raises(InfrastructureError):
        await store.keep_rewards("normalised", 1, {one: 0.5, uuid4(): 0.5})
    assert (await found(store, one)).rewards == ()


async def test_rewards_are_deleted_with_their_solution(store: Store, engine: AsyncEngine) -> None:
    solution_id = await add(store)
    await store.keep_rewards("normalised", 1, {solution_id: 0.5})
    async with engine.connect() as connection:
        await connection.execute(text("DELETE FROM solutions"))
        rows = await connection.execute(text("SELECT count(*) FROM rewards"))
        assert rows.scalar_one() == 0


async def test_outcomes_come_in_pages_with_all_that_a_reward_takes(store: Store) -> None:
    ids = [await add(store, failure=FAILURE if number % 2 else None) for number in range(5)]
    seen: list[StoredOutcome] = []
    last = None
    while page := await store.outcomes(ALL, last, 2):
        seen += page
        last = page[-1]
    assert [outcome.solution_id for outcome in seen] == ids
    assert await store.count_outcomes(ALL) == 5
    first, second = seen[:2]
    assert (first.grade.score, first.grade.failure, first.data_digest) == (0.8, None, "d1")
    assert (second.grade.score, second.grade.failure) == (None, FAILURE)
    reached = (Milestone.IMPORTED_PACKAGES, Milestone.LOADED_DATA)
    assert first.execution.milestones == second.execution.milestones == reached
    assert await store.outcomes(OutcomeFilter(run_id="\x00"), None, 2) == ()


async def test_rescoring_does_not_change_stored_solutions(store: Store, tmp_path: Path) -> None:
    valid, failed = await add(store, OF_PIZZA), await add(store, OF_PIZZA, failure=FAILURE)
    before = [(await found(store, one)).answer for one in (valid, failed)]
    registry = prepared(tmp_path)
    tallies = await tallied(store, registry, NormalisedScheme())
    earned = (0.8 - 0.5) / (0.97908 - 0.5)
    version, value = (await kept(store, valid))["normalised"]
    assert version == 1
    assert value == pytest.approx(earned)
    assert await kept(store, failed) == {"normalised": (1, -0.8)}
    tally = tallies[PIZZA]
    assert (tally.rescored, tally.skipped, tally.mean_before) == (2, 0, 0.8)
    assert tally.mean_after == pytest.approx((earned - 0.8) / 2)
    assert [(await found(store, one)).answer for one in (valid, failed)] == before
    rewards = (await found(store, valid)).rewards
    assert await tallied(store, registry, NormalisedScheme()) == tallies
    assert (await found(store, valid)).rewards == rewards


async def test_solutions_on_other_data_are_skipped_if_a_scale_is_needed(
    store: Store, tmp_path: Path
) -> None:
    pizza, unknown = await add(store, OF_PIZZA), await add(store)
    registry = prepared(tmp_path, "d2")
    tallies = await tallied(store, registry, NormalisedScheme())
    skipped = {name: (tally.rescored, tally.skipped) for name, tally in tallies.items()}
    assert skipped == {PIZZA: (0, 1), SUBMISSION.task_id: (0, 1)}
    assert tallies[PIZZA].mean_after is None
    assert await kept(store, pizza) == await kept(store, unknown) == {}
    tallies = await tallied(store, registry, PaperScheme())
    assert {tally.rescored for tally in tallies.values()} == {1}
    assert await kept(store, unknown) == {"paper": (1, 0.8)}


async def test_only_selected_solutions_are_rescored(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward_server.rescoring._PAGE", 2)
    wanted = [await add(store, replace(OF_PIZZA, run_id="r")) for _ in range(5)]
    other = await add(store, OF_PIZZA)
    registry = prepared(tmp_path)
    counts = [
        sum(tally.rescored for tally in tallies.values())
        async for tallies in rescore(store, registry, NormalisedScheme(), OutcomeFilter(PIZZA, "r"))
    ]
    assert counts == [2, 4, 5]
    assert await kept(store, other) == {}
    assert all([await kept(store, one) for one in wanted])
    assert await tallied(store, registry, PaperScheme(), OutcomeFilter("x")) == {}


async def test_the_command_reaches_a_database_by_its_url(
    store: Store, tmp_path: Path, database_url: str
) -> None:
    prepared(tmp_path)
    solution_id = await add(store, OF_PIZZA)
    await add(store)
    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs
        [COMMAND, "rescore", "--scheme", "percentile", "--json", "--data-dir", tmp_path],
        env={**os.environ, "DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["task_id"], line["rescored"], line["skipped"]) for line in lines] == [
        (PIZZA, 1, 0),
        (SUBMISSION.task_id, 0, 1),
    ]
    assert {(line["scheme"], line["scheme_version"]) for line in lines} == {("percentile", 1)}
    (reward,) = (await found(store, solution_id)).rewards
    assert isinstance(reward, KeptReward)
    assert lines[0]["mean_after"] == reward.value
    assert not (tmp_path / "postgres").exists()


async def test_solutions_from_before_schemes_had_versions_have_the_first(
    store: Store, engine: AsyncEngine
) -> None:
    solution_id = await add(store)
    await downgrade(engine, "0003")
    await upgrade(engine)
    detail = await found(store, solution_id)
    assert detail.answer.reward == Reward(0.8, "paper", 1)
