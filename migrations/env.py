"""Alembic's environment: uses the connection of the server, or DATABASE_URL."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from alembic import context

from reward_server.store.engine import make_engine
from reward_server.store.tables import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection, target_metadata=metadata, transaction_per_migration=True
    )
    with context.begin_transaction():
        context.run_migrations()


async def _migrate_by_url() -> None:
    engine = make_engine(os.environ["DATABASE_URL"])
    async with engine.connect() as connection:
        await connection.run_sync(_migrate)
    await engine.dispose()


handed_in = context.config.attributes.get("connection")
if handed_in is None:
    asyncio.run(_migrate_by_url())
else:
    _migrate(handed_in)
