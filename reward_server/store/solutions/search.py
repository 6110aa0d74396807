"""Searching in plans and programs by words.

A program's words are what stands between anything but letters and digits, so that
`sklearn.linear_model` has three. Only the first part of a long text is searched: what Postgres
keeps of a text to search in has an upper limit, and no program may be refused for its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, literal_column, text

from reward_server.store.rows import storable

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

SEARCHED_CHARS = 100_000
# The signs of ASCII: what is not ASCII counts as letters, in whatever language a plan is.
_BETWEEN = r"'[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+'"
# Also the expression of an index, which must stay the same.
WORDS = (
    "to_tsvector('simple'::regconfig, "
    f"regexp_replace(left(plan || ' ' || code, {SEARCHED_CHARS}), {_BETWEEN}, ' ', 'g'))"
)
_ASKED = f"plainto_tsquery('simple'::regconfig, regexp_replace(:words, {_BETWEEN}, ' ', 'g'))"


def matches(words: str) -> ColumnElement[bool]:
    """Return what holds for solutions in whose plan and program all these words stand."""
    found: ColumnElement[bool] = literal_column(WORDS).op("@@")(
        text(_ASKED).bindparams(bindparam("words", storable(words)))
    )
    return found
