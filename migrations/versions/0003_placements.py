"""Placements: a cache of the markers that a language model placed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.create_table(
        "placements",
        sa.Column("program_digest", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("prompt_version", sa.Integer(), nullable=False),
        sa.Column("places", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "cardinality(places) % 3 = 0", name=op.f("ck_placements_places_are_triples")
        ),
        sa.PrimaryKeyConstraint(
            "program_digest", "mode", "model", "prompt_version", name=op.f("pk_placements")
        ),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_table("placements")
