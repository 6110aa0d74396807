"""Making indexes while the store is in use: writers are never held up for longer than a moment."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

_BROKEN = text("""
    SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relname = :name AND NOT indisvalid
""")

# Waiting for older transactions holds up nobody else.
_PATIENT, _IMPATIENT = "SET lock_timeout = 0", "SET lock_timeout = '1s'"


def make_index(name: str, definition: str) -> None:
    """Make an index, unless it is there; one that was interrupted is made anew.

    It is made outside of any transaction, so that a step with such an index has nothing else in it
    that could not be done twice.
    """
    with op.get_context().autocommit_block():
        op.execute(_PATIENT)
        if op.get_bind().execute(_BROKEN, {"name": name}).first() is not None:
            op.execute(f"DROP INDEX CONCURRENTLY {name}")
        op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {definition}")
        op.execute(_IMPATIENT)


def drop_index(name: str) -> None:
    """Remove an index, if it is there."""
    with op.get_context().autocommit_block():
        op.execute(_PATIENT)
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute(_IMPATIENT)
