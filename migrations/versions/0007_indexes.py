"""Indexes for choosing parents and for full-text search."""

from __future__ import annotations

from migrations.online import drop_index, make_index

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_BETWEEN = r"'[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+'"
_WORDS = (
    "to_tsvector('simple'::regconfig, "
    f"regexp_replace(left(plan || ' ' || code, 100000), {_BETWEEN}, ' ', 'g'))"
)

_INDEXES = {
    "ix_solutions_best_of_task": "solutions (task_id, data_digest, valid, reward, id)",
    "ix_solutions_best_of_run": "solutions (run_id, task_id, data_digest, valid, reward, id)",
    "ix_solutions_steps": "solutions (run_id, task_id, data_digest, valid, step, id)",
    "ix_solutions_words": f"solutions USING gin ({_WORDS})",
}


def upgrade() -> None:
    """Apply this migration."""
    for name, definition in _INDEXES.items():
        make_index(name, definition)


def downgrade() -> None:
    """Revert this migration."""
    for name in _INDEXES:
        drop_index(name)
