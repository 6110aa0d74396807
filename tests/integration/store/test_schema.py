from __future__ import annotations

import asyncio
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import make_url, text

from reward_server.errors import SetupError
from reward_server.store.engine import downgrade, make_engine, parse_database_url, upgrade
from reward_server.store.queries import Store
from reward_server.store.tables import metadata
from tests.integration.store.examples import add

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncEngine

Facts = dict[str, list[tuple[object, ...]]]

_FACTS = {
    "columns": """
        SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2""",
    "constraints": """
        SELECT conname, pg_get_constraintdef(oid), conrelid::regclass::text FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace ORDER BY 1""",
    "indexes": """
        SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1""",
}


async def facts(engine: AsyncEngine) -> Facts:
    async with engine.connect() as connection:
        found = {
            name: [tuple(row) for row in await connection.execute(text(query))]
            for name, query in _FACTS.items()
        }
    return {
        name: [row for row in rows if "alembic_version" not in str(row)]
        for name, rows in found.items()
    }


@pytest_asyncio.fixture
async def empty(engine: AsyncEngine, database_url: str) -> AsyncIterator[AsyncEngine]:
    async with engine.connect() as connection:
        await connection.execute(text("CREATE DATABASE empty"))
    url = make_url(database_url).set(database="empty")
    fresh = make_engine(url.render_as_string(hide_password=False))
    yield fresh
    await fresh.dispose()
    async with engine.connect() as connection:
        await connection.execute(text("DROP DATABASE empty"))


async def sync(engine: AsyncEngine, work: Callable[[Connection], object]) -> object:
    async with engine.begin() as connection:
        return await connection.run_sync(work)


async def test_the_migrations_create_the_schema_of_the_tables(
    engine: AsyncEngine, empty: AsyncEngine
) -> None:
    await sync(empty, metadata.create_all)
    assert await facts(engine) == await facts(empty)
    assert "ck_solutions_reward_is_finite" in str(await facts(engine))


async def test_alembic_finds_nothing_to_add(engine: AsyncEngine) -> None:
    def is_compared(_: object, name: str | None, *__: object) -> bool:
        return name != "ix_solutions_words"  # Postgres spells its expression in its own way

    def compare(connection: Connection) -> object:
        context = MigrationContext.configure(connection, opts={"include_object": is_compared})
        return compare_metadata(context, metadata)

    assert await sync(engine, compare) == []


async def test_down_and_up_again_is_the_same_schema(empty: AsyncEngine) -> None:
    await upgrade(empty)
    before = await facts(empty)
    await downgrade(empty, "base")
    assert await facts(empty) == {"columns": [], "constraints": [], "indexes": []}
    await upgrade(empty)
    assert await facts(empty) == before


async def test_solutions_from_before_pressure_was_known_stay(
    engine: AsyncEngine, empty: AsyncEngine
) -> None:
    await upgrade(empty)
    solution_id = await add(Store(empty))
    await downgrade(empty, "0001")
    assert "pressure" not in str(await facts(empty))
    await upgrade(empty)
    assert await facts(empty) == await facts(engine)
    detail = await Store(empty).solution(solution_id)
    assert detail is not None
    assert (detail.answer.execution.pressure, detail.answer.execution.contended) == (None, False)
    assert detail.answer.reward.value == 0.8


async def test_concurrent_migrations_take_turns(empty: AsyncEngine, engine: AsyncEngine) -> None:
    await asyncio.gather(*(upgrade(empty) for _ in range(5)))
    assert await facts(empty) == await facts(engine)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_every_usual_spelling_of_a_url_is_read(scheme: str) -> None:
    url = parse_database_url(f"{scheme}://u:p%40@h:1/d?sslmode=require")
    expected = "postgresql+asyncpg://u:p%40@h:1/d?ssl=require"
    assert url.render_as_string(hide_password=False) == expected


@pytest.mark.parametrize("url", ["", "x", "mysql://h/d", "postgresql://h:port/d"])
def test_another_url_is_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(SetupError, match="postgresql://"):
        parse_database_url(url)


# The first schema that leases were part of; older ones were never served beside a newer one.
_FIRST_SHARED = "0005"
_BEFORE_INDEXES = "0006"


def revisions() -> list[str]:
    script = ScriptDirectory(str(files("migrations")))
    return [revision.revision for revision in script.walk_revisions()][::-1]


def hindrances(before: Facts, after: Facts) -> list[str]:
    """Return what in a newer schema would stop a server that knows the older one."""
    old = {row[:2]: row[2:] for row in before["columns"]}
    new = {row[:2]: row[2:] for row in after["columns"]}
    tables = {name for name, _ in old}
    found = [f"{column} has changed" for column in old if new.get(column) != old[column]]
    found += [
        f"{column} must be given"
        for column, (*_, is_nullable, default) in new.items()
        if column not in old and column[0] in tables and is_nullable == "NO" and default is None
    ]
    known = {name for name, *_ in before["constraints"]}
    return found + [
        f"{name} is asked for"
        for name, definition, table in after["constraints"]
        if name not in known and table in tables and not str(definition).startswith("FOREIGN")
    ]


async def test_an_older_server_runs_on_during_a_migration(empty: AsyncEngine) -> None:
    every = revisions()
    for before, after in pairwise(every[every.index(_FIRST_SHARED) :]):
        await upgrade(empty, before)
        older = await facts(empty)
        await upgrade(empty, after)
        assert hindrances(older, await facts(empty)) == [], after


async def test_a_migration_that_breaks_an_older_server_is_detected(empty: AsyncEngine) -> None:
    await upgrade(empty, "0004")
    older = await facts(empty)
    await upgrade(empty, "0005")
    found = hindrances(older, await facts(empty))
    assert "ck_jobs_running_is_leased is asked for" in found
    assert "('solutions', 'gone') has changed" in hindrances(
        {**older, "columns": [*older["columns"], ("solutions", "gone", "text")]}, older
    )
    added = ("solutions", "wanted", "text", "text", "NO", None)
    assert hindrances(older, {**older, "columns": [*older["columns"], added]}) == [
        "('solutions', 'wanted') must be given"
    ]


async def test_creating_an_index_does_not_block_writers(
    engine: AsyncEngine, empty: AsyncEngine
) -> None:
    await upgrade(empty, _BEFORE_INDEXES)
    serial = empty.execution_options(isolation_level="REPEATABLE READ")
    async with serial.connect() as reader:
        await reader.execute(text("SELECT count(*) FROM solutions"))
        hasty = make_engine(empty.url, command_seconds=0.2)
        moving = asyncio.create_task(upgrade(hasty))
        await until_an_index_waits(empty)
        await asyncio.sleep(0.4)
        solution_id = await add(Store(empty))
        assert not moving.done()
        await reader.rollback()
    await moving
    assert await Store(empty).solution(solution_id) is not None
    assert await facts(empty) == await facts(engine)


async def until_an_index_waits(engine: AsyncEngine) -> None:
    question = text("SELECT count(*) FROM pg_stat_progress_create_index")
    async with engine.connect() as connection, asyncio.timeout(60):
        while not (await connection.execute(question)).scalar_one():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_an_interrupted_index_is_created_again(
    engine: AsyncEngine, empty: AsyncEngine
) -> None:
    await upgrade(empty)
    async with empty.connect() as connection:
        await connection.execute(
            text(
                "UPDATE pg_index SET indisvalid = false"
                " WHERE indexrelid = 'ix_solutions_words'::regclass"
            )
        )
        await connection.execute(
            text("UPDATE alembic_version SET version_num = :revision"),
            {"revision": _BEFORE_INDEXES},
        )
    await upgrade(empty)
    async with empty.connect() as connection:
        broken = await connection.execute(text("SELECT 1 FROM pg_index WHERE NOT indisvalid"))
        assert broken.all() == []
    assert await facts(empty) == await facts(engine)


async def test_a_migration_waits_for_a_table_without_blocking_others(
    empty: AsyncEngine, caplog: pytest.LogCaptureFixture
) -> None:
    await upgrade(empty, _BEFORE_INDEXES)
    serial = empty.execution_options(isolation_level="REPEATABLE READ")
    async with serial.connect() as reader:
        await reader.execute(text("SELECT count(*) FROM solutions"))
        moving = asyncio.create_task(downgrade(empty, "0001"))
        async with asyncio.timeout(60):
            while "in use" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await add(Store(empty))
        await reader.rollback()
    await moving
    assert "pressure" not in str(await facts(empty))
