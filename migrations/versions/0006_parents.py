"""What choosing a parent asks for, the length and the family of programs, and who scored them.

All are null for older solutions, so that the migration does not rewrite the table.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.add_column("solutions", sa.Column("code_chars", sa.Integer(), nullable=True))
    op.add_column("solutions", sa.Column("family", sa.Text(), nullable=True))
    op.add_column("solutions", sa.Column("server_version", sa.Text(), nullable=True))


def downgrade() -> None:
    """Revert this migration."""
    op.drop_column("solutions", "server_version")
    op.drop_column("solutions", "family")
    op.drop_column("solutions", "code_chars")
