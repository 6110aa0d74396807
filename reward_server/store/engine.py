"""How the store reaches Postgres, and how its schema is brought up to date."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from alembic import command
from alembic.config import Config
from sqlalchemy import event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import create_async_engine

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy import URL, Connection
    from sqlalchemy.ext.asyncio import AsyncEngine

log = logging.getLogger(__name__)

_UPGRADE_LOCK = 0x7265776172640001
_LOCK = text(f"SELECT pg_try_advisory_lock({_UPGRADE_LOCK})")
_UNLOCK = text(f"SELECT pg_advisory_unlock({_UPGRADE_LOCK})")
_POLL_SECONDS = 0.1
# A statement that waits for a lock on a whole table blocks all later statements on that table.
_SHORT_LOCK_TIMEOUT = text("SET lock_timeout = '1s'")
_LOCK_NOT_AVAILABLE = "55P03"
_RETRY_SECONDS = 2.0
_DRIVERS = ("postgres", "postgresql", "postgresql+asyncpg")


def parse_database_url(database_url: str | URL) -> URL:
    """Read any usual spelling of a Postgres URL and choose the driver.

    Raises:
        SetupError: when it is not a URL of a Postgres database.
    """
    try:
        url = make_url(database_url)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.drivername not in _DRIVERS:
        text = "DATABASE_URL is not of the form postgresql://user:password@host:5432/database"
        raise SetupError(text)
    url = url.set(drivername="postgresql+asyncpg")
    sslmode = url.query.get("sslmode")
    if not isinstance(sslmode, str):
        return url
    return url.difference_update_query(["sslmode"]).update_query_dict({"ssl": sslmode})


def make_engine(
    database_url: str | URL, pool_size: int = 10, command_seconds: float | None = 60.0
) -> AsyncEngine:
    """Return a pool of connections in which every statement is its own transaction by default.

    A statement may take `command_seconds`; None means without a limit.
    """
    engine = create_async_engine(
        parse_database_url(database_url),
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=30,
        pool_use_lifo=True,
        pool_reset_on_return=None,
        connect_args={"timeout": 10, "command_timeout": command_seconds},
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return engine


def _refuse_closed(connection: Any, _record: Any, _proxy: Any) -> None:  # noqa: ANN401
    # Cheaper than a ping, which takes a round trip; detects a restarted server all the same.
    if connection.driver_connection.is_closed():
        raise DisconnectionError


async def upgrade(engine: AsyncEngine, revision: str = "head") -> None:
    """Migrate the schema up to a revision, step by step; concurrent processes take turns.

    A step is one transaction, or creates one index concurrently, without blocking writers.
    """
    await _migrate(engine, command.upgrade, revision)


async def downgrade(engine: AsyncEngine, revision: str) -> None:
    """Migrate the schema down to a revision, step by step."""
    await _migrate(engine, command.downgrade, revision)


async def _migrate(engine: AsyncEngine, step: Any, revision: str) -> None:  # noqa: ANN401
    def run(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        step(config, revision)

    migration_engine = make_engine(engine.url, pool_size=2, command_seconds=None)
    try:
        async with _migration_lock(migration_engine):
            while not await _try_steps(migration_engine, run):
                log.warning("the migration waits for a table that is in use")
                await asyncio.sleep(_RETRY_SECONDS)
    finally:
        await migration_engine.dispose()


async def _try_steps(engine: AsyncEngine, run: Callable[[Connection], None]) -> bool:
    """Run the steps; False if a lock was not granted in time and the caller should try again."""
    serial = engine.execution_options(isolation_level="READ COMMITTED")
    async with serial.connect() as connection:
        await connection.execute(_SHORT_LOCK_TIMEOUT)
        await connection.commit()
        try:
            await connection.run_sync(run)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            return False
        finally:
            await connection.invalidate()
    return True


@asynccontextmanager
async def _migration_lock(engine: AsyncEngine) -> AsyncIterator[None]:
    """Hold the migration lock; poll for it outside of any transaction.

    CREATE INDEX CONCURRENTLY waits for all open transactions, also for those waiting for this lock.
    """
    async with engine.connect() as connection:
        while not (await connection.execute(_LOCK)).scalar_one():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            await connection.execute(_UNLOCK)
