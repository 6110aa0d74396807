"""Reading public tables: typed for those who compute, as written for the lint.

A table too large to be held is read in part: rows at even distances, the same ones each time.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reward_server.tasks.sdk.tables import parse_csv

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reward_server.tasks.leaks.strength import Codes

MOST_BYTES = 256 << 20


def read_table(path: Path) -> pd.DataFrame:
    """Read a public table, CSV or JSON records, with nested values as text."""
    if path.suffix != ".json":
        return parse_csv(path.read_bytes())
    table = pd.DataFrame(json.loads(path.read_bytes()))
    nested = [name for name in table if table[name].map(type).isin((list, dict)).any()]
    return table.assign(**{str(name): table[name].map(json.dumps) for name in nested})


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """Rows of a table with every value as it is written; nothing where there is none."""

    table: pd.DataFrame
    rows: Codes
    total: int

    @property
    def is_part(self) -> bool:
        """Tell whether there are rows that were not read."""
        return len(self.rows) < self.total


def read_written(path: Path, most_rows: int) -> WrittenTable:
    """Read a table as text, at most so many rows of it."""
    if path.suffix != ".json" and path.stat().st_size > MOST_BYTES:
        return _read_large(path, most_rows)
    return take_part(parse_written(path.read_bytes(), path.suffix), most_rows)


def read_column(path: Path, name: str) -> list[str]:
    """Read one column of a table as text, all of it."""
    if path.suffix == ".json":
        return parse_written(path.read_bytes(), path.suffix)[name].tolist()
    column = pd.read_csv(path, usecols=[name], dtype=str, keep_default_na=False)[name]
    return [str(value) for value in column]


def parse_written(data: bytes, suffix: str) -> pd.DataFrame:
    """Parse JSON records or separated values without interpreting any value.

    Raises:
        ValueError: when the bytes are no table.
    """
    if suffix in {".json", ".jsonl", ".ndjson"}:
        return _from_json(data, suffix)
    separator = "\t" if suffix == ".tsv" else ","
    table = pd.read_csv(
        io.BytesIO(data), sep=separator, dtype=str, keep_default_na=False, encoding_errors="replace"
    )
    return table.rename(columns=str)


def take_part(table: pd.DataFrame, most_rows: int) -> WrittenTable:
    """Return rows at even distances when there are more than so many."""
    total = len(table)
    if total <= most_rows:
        return WrittenTable(table, np.arange(total), total)
    rows = np.unique(np.linspace(0, total - 1, most_rows).astype(np.intp))
    return WrittenTable(table.iloc[rows].reset_index(drop=True), rows, total)


def _from_json(data: bytes, suffix: str) -> pd.DataFrame:
    text = data.decode("utf-8", errors="replace")
    content = json.loads(text) if suffix == ".json" else [json.loads(x) for x in text.splitlines()]
    are_columns = isinstance(content, dict) and all(isinstance(x, list) for x in content.values())
    if isinstance(content, dict) and not are_columns:
        content = list(content.items())
    table = pd.DataFrame(content if isinstance(content, list | dict) else [content])
    written = {str(name): [_write(value) for value in table[name].tolist()] for name in table}
    return pd.DataFrame(written)


def _write(value: Any) -> str:  # noqa: ANN401 -- whatever JSON holds
    if isinstance(value, str):
        return value
    if value is None or value != value:  # noqa: PLR0124 -- NaN alone differs from itself
        return ""
    return repr(value) if isinstance(value, int | float) else json.dumps(value)


def _read_large(path: Path, most_rows: int) -> WrittenTable:
    header, total = _count_lines(path)
    step = max(1, total // most_rows)
    with path.open("r", encoding="utf-8", errors="replace", newline="") as file:
        rows = list(islice(csv.reader(file), 1, None, step))
    fitting = [row for row in rows if len(row) == len(header)]
    table = pd.DataFrame(fitting, columns=header, dtype=str)
    return WrittenTable(table, np.arange(len(fitting)) * step, total)


def _count_lines(path: Path) -> tuple[list[str], int]:
    with path.open("rb") as file:
        header = next(csv.reader([file.readline().decode("utf-8", errors="replace")]))
        lines = sum(block.count(b"\n") for block in _blocks(file))
    return header, lines


def _blocks(file: Any) -> Iterator[bytes]:  # noqa: ANN401 -- any binary file
    while block := file.read(1 << 22):
        yield block
