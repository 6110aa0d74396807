"""Search, statistics, lineage, export, import and pruning of the store."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from sqlalchemy import text

from reward_server.errors import RequestError, SetupError
from reward_server.jobs.retention import Retention, prune_all
from reward_server.model import Program, PromptKind
from reward_server.store.solutions.archive import Archive
from reward_server.store.solutions.files import check_name, reading, writing
from reward_server.store.solutions.paging import SolutionFilter
from reward_server.store.solutions.records import MalformedRecordError, check_record
from tests.integration.store.examples import FAILURE, SUBMISSION, add

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.store.queries import Store

EVERYTHING = SolutionFilter()
BOOSTED = Program("from sklearn.ensemble import HistGradientBoosting_x\nfit()\n", "Boost the trees")
LINEAR = Program("import sklearn.linear_model as lm\nlm.Ridge(alpha=1)\n", "Größe: one line")


@pytest_asyncio.fixture
async def archive(engine: AsyncEngine, store: Store) -> Archive:
    del store
    return Archive.over(engine)


async def found(store: Store, **wanted: Any) -> set[UUID]:  # noqa: ANN401
    page = await store.solutions(SolutionFilter(**wanted))
    return {line.solution_id for line in page.solutions}


async def test_solutions_are_found_by_the_words_of_plan_and_program(store: Store) -> None:
    boosted, linear = await add(store, program=BOOSTED), await add(store, program=LINEAR)
    assert await found(store, text="sklearn") == {boosted, linear}
    assert await found(store, text="linear_model") == {linear}
    assert await found(store, text="ridge ALPHA") == {linear}
    assert await found(store, text="größe") == {linear}
    assert await found(store, text="boost trees") == {boosted}
    assert await found(store, text="ridge trees") == set()
    assert await found(store, text="'); DROP TABLE solutions; --") == set()


async def test_a_program_of_any_length_is_stored_and_its_beginning_is_found(store: Store) -> None:
    words = " ".join(f"w{number:x}ü" for number in range(400_000))
    long = await add(store, program=Program(words, ""))
    assert await found(store, text="w1ü") == {long}
    assert await found(store, text=f"w{399_999:x}ü") == set()


async def test_solutions_are_filtered_by_their_columns(store: Store) -> None:
    root = await add(store, replace(SUBMISSION, step=1), reward=0.1, duration_seconds=5)
    improving = replace(
        SUBMISSION, step=2, parent_id=str(root), prompt_kind=PromptKind.IMPROVE, run_id="other"
    )
    child = await add(store, improving, reward=0.7, failure=FAILURE, duration_seconds=50)
    assert await found(store, step=1) == {root}
    assert await found(store, parent_id=str(root)) == {child}
    assert await found(store, prompt_kind="improve") == {child}
    assert await found(store, error_kind=FAILURE.kind.value) == {child}
    assert await found(store, min_reward=0.5) == {child}
    assert await found(store, max_reward=0.5) == {root}
    assert await found(store, min_duration=5, max_duration=50) == {root, child}
    assert await found(store, max_duration=4.9) == set()
    assert await found(store, data_digest="d1", run_id="other") == {child}
    digest = (await store.solutions(EVERYTHING)).solutions[0]
    detail = await store.solution(digest.solution_id)
    assert detail is not None
    assert await found(store, program_digest=detail.answer.program_digest) == {root, child}
    with pytest.raises(RequestError):
        await found(store, parent_id="x")


async def test_a_lineage_has_ancestors_and_descendants_with_changes(
    store: Store, archive: Archive
) -> None:
    eldest = await add(store, reward=0.1)
    middle = await add(store, replace(SUBMISSION, parent_id=str(eldest)), reward=0.6)
    left = await add(store, replace(SUBMISSION, parent_id=str(middle)), reward=0.5)
    right = await add(
        store, replace(SUBMISSION, parent_id=str(middle)), reward=0.9, failure=FAILURE
    )
    last = await add(store, replace(SUBMISSION, parent_id=str(right)), reward=0.9)
    line = await archive.lineage.of(middle, 10, 10)
    assert [one.solution_id for one in line] == [eldest, middle, right, left, last]
    assert [one.generation for one in line] == [-1, 0, 1, 1, 2]
    changes = [None if one.reward_change is None else round(one.reward_change, 9) for one in line]
    assert changes == [None, 0.5, 0.3, -0.1, 0.0]
    assert [one.score_change for one in line] == [None, 0.0, None, 0.0, None]
    assert [one.solution_id for one in await archive.lineage.of(middle, 0, 1)] == [
        middle,
        right,
        left,
    ]


async def test_statistics_of_a_run_agree_with_its_solutions(store: Store, archive: Archive) -> None:
    rewards = {1: [0.5, 0.7, 0.9], 2: [1.0]}
    for step, values in rewards.items():
        for reward in values:
            await add(
                store,
                replace(SUBMISSION, step=step, run_id="counted"),
                reward=reward,
                failure=FAILURE if reward == 0.5 else None,
                duration_seconds=10 * reward,
            )
    await add(store, replace(SUBMISSION, run_id="another"), reward=-10.0)
    total, first, second = await archive.statistics.steps("counted")
    assert (total.is_total, total.solutions, total.valid) == (True, 4, 3)
    assert (first.step, first.solutions, first.valid, first.improved) == (1, 3, 2, 0)
    assert first.mean_reward == pytest.approx(0.7)
    assert first.max_reward == 0.9
    assert first.failures == total.failures == {FAILURE.kind.value: 1}
    assert first.milestones["loaded_data"] == 3
    assert first.milestones["trained_model"] == 0
    assert first.p50_duration == pytest.approx(7.0)
    assert first.p95_duration == pytest.approx(8.8)
    assert (second.step, second.failures, second.spread_reward) == (2, {}, None)
    assert await archive.statistics.steps("counted", "no such task") == ()
    assert [run.run_id for run in await archive.statistics.runs(None, 10)] == ["another", "counted"]
    assert [run.run_id for run in await archive.statistics.runs("another", 10)] == ["counted"]


async def records(archive: Archive, wanted: SolutionFilter = EVERYTHING) -> list[dict[str, Any]]:
    return [record async for page in archive.transfer.pages(wanted) for record in page]


async def empty(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("TRUNCATE jobs, solutions, rewards, batches, batch_items"))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
async def test_an_export_can_be_imported_unchanged(
    store: Store, archive: Archive, engine: AsyncEngine, tmp_path: Path, name: str
) -> None:
    first = await add(store, program=LINEAR, stdout_tail="a \ufffd b\n" * 100)
    child = replace(SUBMISSION, parent_id=str(first), step=None, sample_id=None)
    second = await add(store, child, failure=FAILURE, reward=-9.7)
    await store.keep_rewards("normalised", 2, {first: 0.25})
    before = await records(archive), [await store.solution(one) for one in (first, second)]
    with writing(tmp_path / name) as write:
        async for page in archive.transfer.pages(EVERYTHING):
            write(page)
    await empty(engine)
    for page in reading(tmp_path / name):
        assert await archive.transfer.import_records(page) == 2
        assert await archive.transfer.import_records(page) == 0
    after = await records(archive), [await store.solution(one) for one in (first, second)]
    assert after[0] == before[0]
    assert [one and one.answer for one in after[1]] == [one and one.answer for one in before[1]]
    assert await archive.transfer.count(EVERYTHING) == 2
    assert {record["server_version"] for record in after[0]} == {version("reward-server")}
    job = await store.job((await records(archive))[0]["job_id"])
    assert job is not None
    assert job.state.has_answer


async def test_an_export_of_many_pages_has_every_solution_once_in_order(
    store: Store, archive: Archive
) -> None:
    added = [await add(store, reward=float(number % 7)) for number in range(12)]
    record = (await records(archive))[0]
    page = [record | {"id": _id(one), "job_id": _id(one + 5000)} for one in range(1100)]
    assert await archive.transfer.import_records(page) == 1100
    seen = Counter([record["id"] for record in await records(archive)])
    assert len(seen) == 1112
    assert set(seen.values()) == {1}
    assert {str(one) for one in added} <= set(seen)


def _id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


@pytest.mark.parametrize(
    "change",
    [
        {"reward": None},
        {"reward": float("nan")},
        {"reward": "0.5"},
        {"id": "x"},
        {"created_at": "2026-01-01"},
        {"valid": 1},
        {"milestones": [1.5]},
        {"unknown": 1},
        {"rewards": [{"scheme": "paper"}]},
        {"step": True},
    ],
    ids=str,
)
async def test_a_record_that_is_not_a_solution_is_refused(
    store: Store, archive: Archive, change: dict[str, object]
) -> None:
    await add(store)
    (record,) = await records(archive)
    with pytest.raises(MalformedRecordError):
        check_record(record | change)


async def test_a_page_with_a_refused_record_adds_nothing(
    store: Store, archive: Archive, engine: AsyncEngine
) -> None:
    await add(store)
    (record,) = await records(archive)
    await empty(engine)
    other = record | {"id": _id(1), "job_id": _id(2), "status": "failed"}
    with pytest.raises(MalformedRecordError, match="valid_is_scored"):
        await archive.transfer.import_records([record, other])
    assert await archive.transfer.count(EVERYTHING) == 0
    async with engine.connect() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM jobs"))).scalar_one() == 0


def test_files_of_another_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="jsonl"):
        check_name(tmp_path / "a.csv")
    for name, content in {
        "a.jsonl": b"{\n",
        "b.jsonl.gz": b"plain",
        "c.parquet": b"plain",
        "d.jsonl": b"[" * 100_000,
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(MalformedRecordError):
            list(reading(tmp_path / name))


def test_an_unfinished_export_leaves_no_file(tmp_path: Path) -> None:
    def break_off() -> None:
        with writing(tmp_path / "a.jsonl") as write:
            write([{"id": 1}])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert list(tmp_path.iterdir()) == []


async def age(engine: AsyncEngine, *solution_ids: UUID) -> None:
    async with engine.connect() as connection:
        await connection.execute(
            text("UPDATE solutions SET created_at = now() - interval '9 days' WHERE id = ANY (:x)"),
            {"x": list(solution_ids)},
        )
        await connection.execute(text("UPDATE jobs SET finished_at = now() - interval '9 days'"))


async def test_the_best_and_their_ancestors_are_never_pruned(
    store: Store, archive: Archive, engine: AsyncEngine
) -> None:
    eldest = await add(store, reward=-9.9, failure=FAILURE)
    parent = await add(store, replace(SUBMISSION, parent_id=str(eldest)), reward=0.1)
    best = await add(store, replace(SUBMISSION, parent_id=str(parent)), reward=0.9)
    loser = await add(store, replace(SUBMISSION, parent_id=str(best)), reward=0.3)
    failed = await add(store, reward=-10.0, failure=FAILURE)
    other_run = await add(store, replace(SUBMISSION, run_id="weak"), reward=0.2)
    other_task = await add(store, replace(SUBMISSION, task_id="alone"), reward=0.1)
    young = await add(store, reward=0.2)
    await age(engine, eldest, parent, best, loser, failed, other_run, other_task)
    retention = Retention(outputs_seconds=86_400.0, solutions_seconds=None, keep_best=1)
    assert await prune_all(archive.pruning, retention) == (2, 0)
    texts = {record["id"]: record["stdout_tail"] for record in await records(archive)}
    assert {one for one, tail in texts.items() if tail == ""} == {str(loser), str(failed)}
    retention = Retention(outputs_seconds=None, solutions_seconds=86_400.0, keep_best=1)
    assert await prune_all(archive.pruning, retention) == (0, 2)
    left = await found(store)
    assert left == {eldest, parent, best, other_run, other_task, young}
    async with engine.connect() as connection:
        jobs = (await connection.execute(text("SELECT count(*) FROM jobs"))).scalar_one()
    assert jobs == len(left)
    assert await prune_all(archive.pruning, retention) == (0, 0)


async def test_nothing_is_pruned_by_default(
    store: Store, archive: Archive, engine: AsyncEngine
) -> None:
    await age(engine, *[await add(store, reward=-10.0, failure=FAILURE) for _ in range(3)])
    assert await prune_all(archive.pruning, Retention(None, None, 1)) == (0, 0)
    assert await archive.transfer.count(EVERYTHING) == 3
