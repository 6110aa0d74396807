"""Full-text search in plans and programs.

Words are sequences of letters and digits: `sklearn.linear_model` has three. Only the first
`SEARCHED_CHARS` are searched, because Postgres limits the size of a tsvector and refuses a longer
one, and the length of a program must not prevent storing it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, literal_column, text

from reward_server.store.rows import storable

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

SEARCHED_CHARS = 100_000
# The punctuation of ASCII; other characters count as letters, since a plan may be in any language.
_BETWEEN = r"'[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+'"
# An index is built on this very expression; Postgres uses it only if the text is the same.
WORDS = (
    "to_tsvector('simple'::regconfig, "
    f"regexp_replace(left(plan || ' ' || code, {SEARCHED_CHARS}), {_BETWEEN}, ' ', 'g'))"
)
_QUERY = f"plainto_tsquery('simple'::regconfig, regexp_replace(:words, {_BETWEEN}, ' ', 'g'))"


def matches(words: str) -> ColumnElement[bool]:
    """Return the condition that all these words are in a solution's plan and program."""
    found: ColumnElement[bool] = literal_column(WORDS).op("@@")(
        text(_QUERY).bindparams(bindparam("words", storable(words)))
    )
    return found
