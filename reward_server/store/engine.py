"""How the store reaches Postgres, and how its schema is brought up to date."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from alembic import command
from alembic.config import Config
from sqlalchemy import event, make_url, text
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.ext.asyncio import create_async_engine

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection
    from sqlalchemy.ext.asyncio import AsyncEngine

_UPGRADE_LOCK = 0x7265776172640001
_DRIVERS = ("postgres", "postgresql", "postgresql+asyncpg")


def parse_database_url(database_url: str) -> URL:
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


def make_engine(database_url: str, pool_size: int = 10) -> AsyncEngine:
    """Make a pool of connections in which every statement is its own transaction by default."""
    engine = create_async_engine(
        parse_database_url(database_url),
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=30,
        pool_use_lifo=True,
        pool_reset_on_return=None,
        connect_args={"timeout": 10, "command_timeout": 60},
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return engine


def _refuse_closed(connection: Any, _record: Any, _proxy: Any) -> None:  # noqa: ANN401
    # Costs nothing where a ping costs a round trip, and sees a restarted server as well.
    if connection.driver_connection.is_closed():
        raise DisconnectionError


async def upgrade(engine: AsyncEngine, revision: str = "head") -> None:
    """Bring the schema to a revision in one transaction; concurrent starts take turns."""
    await _migrate(engine, command.upgrade, revision)


async def downgrade(engine: AsyncEngine, revision: str) -> None:
    """Take the schema back to a revision in one transaction."""
    await _migrate(engine, command.downgrade, revision)


async def _migrate(engine: AsyncEngine, step: Any, revision: str) -> None:  # noqa: ANN401
    def run(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        step(config, revision)

    serial = engine.execution_options(isolation_level="READ COMMITTED")
    async with serial.begin() as connection:
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})"))
        await connection.run_sync(run)
