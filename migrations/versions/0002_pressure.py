"""How true a duration is: the pressure others put on the run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Take this step."""
    op.add_column("solutions", sa.Column("pressure", sa.Double(), nullable=True))
    op.add_column(
        "solutions",
        sa.Column("contended", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )


def downgrade() -> None:
    """Take this step back."""
    op.drop_column("solutions", "contended")
    op.drop_column("solutions", "pressure")
