"""Pressure: how much other processes slowed a program down."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.add_column("solutions", sa.Column("pressure", sa.Double(), nullable=True))
    op.add_column(
        "solutions",
        sa.Column("contended", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_column("solutions", "contended")
    op.drop_column("solutions", "pressure")
