"""What choosing a parent asks for: the length and the family of programs, and three indexes.

The columns are null for older solutions, so that no table is written anew. An index that is
there already stays: on a large store in use, make them ahead with CREATE INDEX CONCURRENTLY
(docs/prompts.md), and this step holds nobody up.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_solutions_best_of_task": ["task_id", "data_digest", "valid", "reward", "id"],
    "ix_solutions_best_of_run": ["run_id", "task_id", "data_digest", "valid", "reward", "id"],
    "ix_solutions_steps": ["run_id", "task_id", "data_digest", "valid", "step", "id"],
}


def upgrade() -> None:
    """Take this step."""
    op.add_column("solutions", sa.Column("code_chars", sa.Integer(), nullable=True))
    op.add_column("solutions", sa.Column("family", sa.Text(), nullable=True))
    for name, columns in _INDEXES.items():
        op.create_index(name, "solutions", columns, if_not_exists=True)


def downgrade() -> None:
    """Take this step back."""
    for name in _INDEXES:
        op.drop_index(name, table_name="solutions")
    op.drop_column("solutions", "family")
    op.drop_column("solutions", "code_chars")
