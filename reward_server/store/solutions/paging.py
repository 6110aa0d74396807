"""Lists of solutions with keyset pagination: the cursor is the sort key of the last line.

A page starts right after that key, so solutions that are added meanwhile neither repeat nor hide
others.
"""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, assert_never
from uuid import UUID

from sqlalchemy import select, tuple_

from reward_server.errors import RequestError
from reward_server.model import ErrorKind
from reward_server.store.rows import parse_parent_id, read, storable
from reward_server.store.solutions.search import matches
from reward_server.store.tables import solutions
from reward_server.store.values import Page, StoredSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Column, ColumnElement, Row, Select

MOST_PER_PAGE = 500
_LONGEST_CURSOR = 300
_TEXTS = ("code", "plan", "stdout_tail", "stderr_tail")
_SHOWN = [column for column in solutions.c if column.name not in _TEXTS]


class SortOrder(StrEnum):
    """The order of a list of solutions: the highest, newest or longest first."""

    REWARD = "reward"
    TIME = "time"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class SolutionFilter:
    """Selects solutions, their order, and the page."""

    task_id: str | None = None
    run_id: str | None = None
    step: int | None = None
    valid: bool | None = None
    prompt_kind: str | None = None
    error_kind: str | None = None
    program_digest: str | None = None
    parent_id: str | None = None
    data_digest: str | None = None
    min_reward: float | None = None
    max_reward: float | None = None
    min_duration: float | None = None
    max_duration: float | None = None
    text: str | None = None
    order: SortOrder = SortOrder.REWARD
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class _SortKey:
    value: float | datetime
    solution_id: UUID


def select_page(wanted: SolutionFilter) -> Select[Any]:
    """Return the query of one page, with one row more to see whether another page follows.

    Raises:
        RequestError: when the limit is out of range or the cursor is not from this list.
    """
    if not 1 <= wanted.limit <= MOST_PER_PAGE:
        message = f"limit must be between 1 and {MOST_PER_PAGE}"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)
    key = _key(wanted.order)
    query = _filtered(wanted).order_by(key.desc(), solutions.c.id.desc()).limit(wanted.limit + 1)
    if wanted.cursor is None:
        return query
    last = _decode(wanted.cursor, wanted.order)
    return query.where(tuple_(key, solutions.c.id) < (last.value, last.solution_id))


def to_page(rows: Sequence[Row[Any]], wanted: SolutionFilter) -> Page:
    """Read the rows of `select_page`."""
    shown = tuple(read(StoredSummary, row, solution_id=row.id) for row in rows[: wanted.limit])
    has_more = len(rows) > wanted.limit
    return Page(shown, _encode(shown[-1], wanted.order) if has_more else None)


def _filtered(wanted: SolutionFilter) -> Select[Any]:
    return select(*_SHOWN).where(*conditions(wanted))


def conditions(wanted: SolutionFilter) -> list[ColumnElement[bool]]:
    """Return the WHERE conditions of a filter."""
    columns = solutions.c
    texts = ("task_id", "run_id", "prompt_kind", "error_kind", "program_digest", "data_digest")
    found: list[ColumnElement[bool]] = [
        columns[name] == storable(value)
        for name in texts
        if (value := getattr(wanted, name)) is not None
    ]
    if wanted.step is not None:
        found.append(columns.step == wanted.step)
    if wanted.valid is not None:
        found.append(columns.valid.is_(wanted.valid))
    if (parent := parse_parent_id(wanted.parent_id)) is not None:
        found.append(columns.parent_id == parent)
    found += _within(columns.reward, wanted.min_reward, wanted.max_reward)
    found += _within(columns.duration_seconds, wanted.min_duration, wanted.max_duration)
    if wanted.text is not None:
        found.append(matches(wanted.text))
    return found


def _within(
    column: Column[Any], least: float | None, most: float | None
) -> list[ColumnElement[bool]]:
    found = [] if least is None else [column >= least]
    return found if most is None else [*found, column <= most]


def _key(order: SortOrder) -> Column[Any]:
    match order:
        case SortOrder.REWARD:
            return solutions.c.reward
        case SortOrder.TIME:
            return solutions.c.created_at
        case SortOrder.DURATION:
            return solutions.c.duration_seconds
        case _:
            assert_never(order)


def _value(solution: StoredSummary, order: SortOrder) -> float | str:
    match order:
        case SortOrder.REWARD:
            return solution.reward
        case SortOrder.TIME:
            return solution.created_at.isoformat()
        case SortOrder.DURATION:
            return solution.duration_seconds
        case _:
            assert_never(order)


def _encode(last: StoredSummary, order: SortOrder) -> str:
    parts = [order.value, _value(last, order), str(last.solution_id)]
    return urlsafe_b64encode(json.dumps(parts).encode()).decode()


def _decode(cursor: str, order: SortOrder) -> _SortKey:
    try:
        return _parse_cursor(cursor, order)
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        message = "the cursor is not one that this list gave"
        raise RequestError(ErrorKind.INVALID_REQUEST, message) from error


def _parse_cursor(cursor: str, order: SortOrder) -> _SortKey:
    if len(cursor) > _LONGEST_CURSOR:
        raise ValueError(cursor)
    name, value, solution_id = json.loads(urlsafe_b64decode(cursor.encode("ascii")))
    if name != order.value:
        raise ValueError(name)
    return _SortKey(_read_value(value, order), UUID(solution_id))


def _read_value(value: object, order: SortOrder) -> float | datetime:
    if order is not SortOrder.TIME:
        if not isinstance(value, float) or not math.isfinite(value):
            raise ValueError(value)
        return value
    moment = datetime.fromisoformat(str(value))
    if moment.tzinfo is None or not 1970 < moment.year < 9999:
        raise ValueError(value)
    return moment
