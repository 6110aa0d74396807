"""Access to the database: one statement, one transaction, one kind of failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reward_server.errors import InfrastructureError, boundary
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Executable, Row
    from sqlalchemy.ext.asyncio import AsyncEngine

Parameters = dict[str, Any]


class Database:
    """A pool of connections that raises InfrastructureError (`store_error`) when it fails."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def rows(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Sequence[Row[Any]]:
        """Return all rows of one statement, committed."""
        with boundary(ErrorKind.STORE_ERROR, "store"):
            async with self._engine.connect() as connection:
                return (await connection.execute(statement, parameters)).all()

    async def row(self, statement: Executable, parameters: Parameters) -> Row[Any] | None:
        """Return the first row of one statement, committed, if there is one."""
        rows = await self.rows(statement, parameters)
        return rows[0] if rows else None

    async def one(self, statement: Executable, parameters: Parameters) -> Row[Any]:
        """Return a row that must exist.

        Raises:
            InfrastructureError: `store_error` when it is not.
        """
        row = await self.row(statement, parameters)
        if row is None:
            raise InfrastructureError(ErrorKind.STORE_ERROR, "a stored job has disappeared")
        return row
