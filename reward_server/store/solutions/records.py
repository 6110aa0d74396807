"""Solutions as plain records: a line of an export, checked again by an import.

Columns and their types come from the table, so a new column is exported and imported by itself.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

from sqlalchemy import ARRAY, Boolean, DateTime, Double, Text, Uuid

from reward_server.store.rows import storable
from reward_server.store.tables import solutions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Column, Row

Record = dict[str, Any]

# Values of columns that records of older versions do not have.
_DEFAULTS: Record = {"contended": False, "scheme_version": 1}


class MalformedRecordError(Exception):
    """A record that is not a solution; the text says why."""


def to_record(row: Row[Any], rewards: Sequence[Record]) -> Record:
    """Return a row of `solutions` as plain values, with its rewards under other schemes."""
    record = {column.name: _plain(getattr(row, column.name)) for column in solutions.c}
    return record | {"rewards": list(rewards)}


def _refuse(message: str) -> NoReturn:
    raise MalformedRecordError(message) from None


def _plain(value: object) -> object:
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value


def check_record(record: object) -> Record:
    """Return a record that the store accepts.

    Raises:
        MalformedRecordError: when it is not a solution.
    """
    if not isinstance(record, dict):
        _refuse("it is not an object")
    names = {column.name for column in solutions.c} | {"rewards"}
    if unknown := sorted(map(str, record.keys() - names)):
        _refuse(f"unknown names: {', '.join(unknown)[:200]}")
    given = _DEFAULTS | record
    checked = {column.name: _check(column, given.get(column.name)) for column in solutions.c}
    return checked | {"rewards": [_check_reward(one) for one in given.get("rewards") or []]}


def _check(column: Column[Any], value: Any) -> object:  # noqa: ANN401 - any JSON value
    if value is None:
        if not column.nullable:
            _refuse(f"{column.name} is missing")
        return None
    try:
        return _read(column, value)
    except (ValueError, TypeError, OverflowError):
        _refuse(f"{column.name} is not {column.type}: {str(value)[:80]!r}")


def _read(column: Column[Any], value: Any) -> object:  # noqa: ANN401, PLR0911 - one way a type
    match column.type:
        case Uuid():
            return str(UUID(value))
        case DateTime():
            return _time(value)
        case Boolean():
            return _of(bool, value)
        case Text():
            return storable(_of(str, value))
        case Double():
            return _finite(value)
        case ARRAY():
            return [_whole(one) for one in _of(list, value)]
        case _:
            return _whole(value)


def _of(kind: type[Any], value: object) -> Any:  # noqa: ANN401
    if not isinstance(value, kind):
        raise TypeError(value)
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return value


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)


def _time(value: object) -> str:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(_of(str, value))
    if moment.tzinfo is None:
        raise ValueError(value)
    return moment.isoformat()


def _check_reward(reward: object) -> Record:
    if not isinstance(reward, dict) or reward.keys() != {"scheme", "scheme_version", "value"}:
        _refuse("rewards are of scheme, scheme_version and value")
    try:
        return {
            "scheme": storable(_of(str, reward["scheme"])),
            "scheme_version": _whole(reward["scheme_version"]),
            "value": _finite(reward["value"]),
        }
    except (ValueError, TypeError):
        _refuse("a reward under another scheme has a wrong type")
