"""Solutions are searched by the words of their plans and programs."""

from __future__ import annotations

from migrations.online import drop_index, make_index

revision = "0007"
down_revision = "0005"
branch_labels = None
depends_on = None

_BETWEEN = r"'[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+'"
_WORDS = (
    "to_tsvector('simple'::regconfig, "
    f"regexp_replace(left(plan || ' ' || code, 100000), {_BETWEEN}, ' ', 'g'))"
)


def upgrade() -> None:
    """Take this step."""
    make_index("ix_solutions_words", f"solutions USING gin ({_WORDS})")


def downgrade() -> None:
    """Take this step back."""
    drop_index("ix_solutions_words")
