"""LISTEN for the database's notifications: jobs that wait, and jobs that have ended anywhere."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg
from sqlalchemy.exc import SQLAlchemyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncEngine

log = logging.getLogger(__name__)

_CONNECTION_ERRORS = (
    SQLAlchemyError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
)
_RECONNECT_SECONDS = 1.0
_HEARTBEAT_SECONDS = 10.0


async def listen(
    engine: AsyncEngine, on_waiting: Callable[[], None], on_ended: Callable[[UUID], None]
) -> None:
    """Call back for every notification, and reconnect when the connection is lost."""
    while True:
        try:
            await _listen_once(engine, on_waiting, on_ended)
        except _CONNECTION_ERRORS as error:
            log.warning("lost the connection for notifications, reconnecting: %r", error)
        await asyncio.sleep(_RECONNECT_SECONDS)


async def _listen_once(
    engine: AsyncEngine, on_waiting: Callable[[], None], on_ended: Callable[[UUID], None]
) -> None:
    async with engine.connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection

        def waiting(*_: object) -> None:
            on_waiting()

        def ended(_connection: object, _pid: int, _channel: str, payload: str) -> None:
            on_ended(UUID(payload))

        try:
            await raw.add_listener("jobs_waiting", waiting)
            await raw.add_listener("jobs_ended", ended)
            on_waiting()  # notifications of jobs that came before are lost
            while not raw.is_closed():
                await asyncio.sleep(_HEARTBEAT_SECONDS)
                await raw.execute("SELECT 1", timeout=_HEARTBEAT_SECONDS)
        finally:
            await connection.invalidate()
