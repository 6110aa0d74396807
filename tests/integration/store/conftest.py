from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from sqlalchemy import text

from reward_server.store.engine import make_engine, upgrade
from reward_server.store.postgres.embedded import embedded_postgres
from reward_server.store.queries import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from sqlalchemy.ext.asyncio import AsyncEngine


@pytest.fixture(scope="session")
def open_dir() -> Iterator[Path]:
    # pytest's own directories are closed to the account that root runs Postgres as.
    directory = Path(tempfile.mkdtemp(prefix="store-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def database_url(open_dir: Path) -> Iterator[str]:
    with embedded_postgres(open_dir / "session") as url:
        yield url


@pytest_asyncio.fixture(scope="session")
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = make_engine(database_url)
    await upgrade(engine)
    yield engine
    await engine.dispose()


@pytest_asyncio.fixture
async def store(engine: AsyncEngine) -> Store:
    async with engine.connect() as connection:
        await connection.execute(text("TRUNCATE jobs, solutions, rewards, batches, batch_items"))
    return Store(engine)
