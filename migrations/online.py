"""Creates and drops indexes while the store is in use, without blocking writers."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

_BROKEN = text("""
    SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relname = :name AND NOT indisvalid
""")

# CREATE INDEX CONCURRENTLY waits for older transactions without blocking others, so it may wait
# long.
_NO_LOCK_TIMEOUT, _SHORT_LOCK_TIMEOUT = "SET lock_timeout = 0", "SET lock_timeout = '1s'"


def make_index(name: str, definition: str) -> None:
    """Create an index unless it exists; replace one whose creation was interrupted.

    The statement runs outside of any transaction. Therefore a migration with such an index must
    contain only steps that can be repeated.
    """
    with op.get_context().autocommit_block():
        op.execute(_NO_LOCK_TIMEOUT)
        if op.get_bind().execute(_BROKEN, {"name": name}).first() is not None:
            op.execute(f"DROP INDEX CONCURRENTLY {name}")
        op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {definition}")
        op.execute(_SHORT_LOCK_TIMEOUT)


def drop_index(name: str) -> None:
    """Drop an index if it exists."""
    with op.get_context().autocommit_block():
        op.execute(_NO_LOCK_TIMEOUT)
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute(_SHORT_LOCK_TIMEOUT)
