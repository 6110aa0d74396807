"""Versions of reward schemes, and rewards of solutions under other schemes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.add_column(
        "solutions", sa.Column("scheme_version", sa.Integer(), server_default="1", nullable=False)
    )
    op.create_table(
        "rewards",
        sa.Column("solution_id", sa.Uuid(), nullable=False),
        sa.Column("scheme", sa.Text(), nullable=False),
        sa.Column("scheme_version", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "value > '-Infinity' AND value < 'Infinity'", name=op.f("ck_rewards_value_is_finite")
        ),
        sa.ForeignKeyConstraint(
            ["solution_id"],
            ["solutions.id"],
            name=op.f("fk_rewards_solution_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("solution_id", "scheme", "scheme_version", name=op.f("pk_rewards")),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_table("rewards")
    op.drop_column("solutions", "scheme_version")
