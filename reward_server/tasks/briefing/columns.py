"""Descriptions of the columns of a table, a line each."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pandas.api.types import is_bool_dtype, is_numeric_dtype

from reward_server.tasks.briefing.wording import name_of, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd

_COUNTED_VALUES = 10
_RUN = 4
_WIDEST = 500
_NUMBERED = re.compile(r"(.*?)\d+")


@dataclass(frozen=True, slots=True)
class ColumnLine:
    """A line about one column, or about a run of them."""

    text: str
    columns: int = 1


def describe_columns(table: pd.DataFrame, to_predict: Iterable[str]) -> tuple[ColumnLine, ...]:
    """Return a line for each column, or for each run of numbered columns of one type.

    Those to predict come first, because lists are cut at their end; of a very wide table only
    the first columns are described.
    """
    wanted = set(to_predict)
    first = [at for at, name in enumerate(table.columns) if str(name) in wanted]
    rest = [at for at in range(min(table.shape[1], _WIDEST)) if at not in first]
    lines = [ColumnLine(_describe_one(table.iloc[:, at], ", to predict")) for at in first]
    for _, run in itertools.groupby(rest, lambda at: _family(table, at)):
        positions = list(run)
        if len(positions) >= _RUN and is_numeric_dtype(table.dtypes.iloc[positions[0]]):
            lines.append(ColumnLine(_describe_run(table.iloc[:, positions]), len(positions)))
        else:
            lines += (ColumnLine(_describe_one(table.iloc[:, at])) for at in positions)
    return tuple(lines)


def _family(table: pd.DataFrame, at: int) -> tuple[str, str]:
    name = str(table.columns[at])
    stem = _NUMBERED.fullmatch(name)
    return (stem[1] if stem else f"{name}\0{at}"), str(table.dtypes.iloc[at])


def _describe_run(columns: pd.DataFrame) -> str:
    names = [name_of(str(name), 40) for name in (columns.columns[0], columns.columns[-1])]
    text = f"{names[0]} to {names[1]} ({columns.shape[1]} columns, {columns.dtypes.iloc[0]})"
    missing = int(columns.isna().sum().sum())
    parts = [f"{_number(columns.min().min())} to {_number(columns.max().max())}"]
    return f"- {text}: {', '.join([*parts, *_missing(missing)])}"


def _describe_one(values: pd.Series, mark: str = "") -> str:
    kind = str(values.dtype) if is_numeric_dtype(values.dtype) else "text"
    missing = int(values.isna().sum())
    facts = ", ".join([*_facts(values.dropna()), *_missing(missing)])
    return f"- {name_of(str(values.name))} ({kind}{mark}): {facts}"


def _facts(values: pd.Series) -> Iterator[str]:
    counts = values.value_counts()
    if len(counts) == 0:
        yield "empty"
    elif len(counts) <= min(_COUNTED_VALUES, len(values) - 1):
        key = None if is_numeric_dtype(values.dtype) else _as_text
        ordered = counts.sort_index(key=key).items()
        yield ", ".join(f"{plain(str(value), 30)} ({count:,})" for value, count in ordered)
    elif is_numeric_dtype(values.dtype) and not is_bool_dtype(values.dtype):
        yield f"{_number(values.min())} to {_number(values.max())}"
        yield f"mean {_number(values.mean())}"
        yield f"{len(counts):,} distinct"
    else:
        lengths = values.astype(str).str.len()
        least, most = int(lengths.min()), int(lengths.max())
        yield f"{least:,} to {most:,} characters" if least < most else f"{most:,} characters"
        yield f"{len(counts):,} distinct"


def _as_text(index: pd.Index) -> pd.Index:
    return index.astype(str)


def _missing(count: int) -> list[str]:
    return [f"{count:,} missing"] if count else []


def _number(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else f"{value}"
