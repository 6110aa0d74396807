"""Listening to the database: what waits, and what has ended, wherever that happened."""

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

_LOST = (
    SQLAlchemyError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
)
_AGAIN_SECONDS = 1.0
_SIGN_SECONDS = 10.0


async def listen(
    engine: AsyncEngine, on_waiting: Callable[[], None], on_ended: Callable[[UUID], None]
) -> None:
    """Call back for every notification, over a connection that is made anew when it is lost."""
    while True:
        try:
            await _listen_once(engine, on_waiting, on_ended)
        except _LOST as error:
            log.warning("notifications are not heard for a moment: %r", error)
        await asyncio.sleep(_AGAIN_SECONDS)


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
            on_waiting()
            while not raw.is_closed():
                await asyncio.sleep(_SIGN_SECONDS)
                await raw.execute("SELECT 1", timeout=_SIGN_SECONDS)
        finally:
            await connection.invalidate()
