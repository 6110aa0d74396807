"""What the lint works on: public tables as written, and the labels in the order of the test rows.

Large tables are read in part: rows at even distances, the same ones each time.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from reward_server.tasks.base import TargetKind
from reward_server.tasks.leaks.strength import Labels, standardised_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from reward_server.tasks.base import Card, Target
    from reward_server.tasks.leaks.strength import Codes, Numbers

MOST_BYTES = 256 << 20
_ALL_ROWS = 1 << 62
_MOST_TEST_ROWS = 8_000
_MOST_TRAIN_ROWS = 20_000
_CHUNK_ROWS = 200_000
_MOST_CLASSES = 200
_FEW_VALUES = 20
_WORDS = {"true": "1", "false": "0"}


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """Some rows of a table with every value as it is written; empty where there is none."""

    table: pd.DataFrame
    rows: Codes
    total: int

    @property
    def is_part(self) -> bool:
        """Tell whether there are rows that were not read."""
        return len(self.rows) < self.total


def read_written(path: Path, most_rows: int = _ALL_ROWS) -> WrittenTable:
    """Read a table as text, at most so many rows of it."""
    if path.suffix == ".json" or path.stat().st_size <= MOST_BYTES:
        return take_part(parse_written(path.read_bytes(), path.suffix), most_rows)
    with path.open("rb") as file:
        lines = sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 22), b""))
    step, total, parts = max(1, lines // most_rows), 0, []
    for chunk in read_chunks(path):
        parts.append(chunk[chunk.index % step == 0])
        total += len(chunk)
    table = pd.concat(parts)
    return WrittenTable(table.reset_index(drop=True), table.index.to_numpy(np.intp), total)


def read_chunks(path: Path) -> Iterator[pd.DataFrame]:
    """Read a whole table as text, a part of its rows at a time."""
    if path.suffix == ".json":
        yield parse_written(path.read_bytes(), path.suffix)
        return
    with pd.read_csv(
        path, dtype=str, keep_default_na=False, encoding_errors="replace", chunksize=_CHUNK_ROWS
    ) as chunks:
        yield from chunks


def read_column(path: Path, name: str) -> list[str]:
    """Read one column of a table as text, all of it."""
    return [str(value) for chunk in read_chunks(path) for value in chunk[name]]


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


def take_part(table: pd.DataFrame, most_rows: int = _MOST_TEST_ROWS) -> WrittenTable:
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


def to_numbers(values: pd.Series) -> Numbers:
    """Return written values as numbers, and NaN for what is none."""
    words = [_WORDS.get(value.lower(), value) for value in map(str.strip, values.tolist())]
    numbers = np.asarray(pd.to_numeric(np.array(words, dtype=object), errors="coerce"), np.float64)
    return np.where(np.isinf(numbers), np.nan, numbers)


@dataclass(frozen=True, slots=True)
class LeakEvidence:
    """The tables of a task with a target, and the answers in the order of the test table."""

    card: Card
    target: Target
    public: Path
    ids: tuple[str, ...]
    truth: pd.DataFrame
    labels: tuple[Labels, ...]
    test: WrittenTable
    train: WrittenTable
    train_labels: tuple[Labels, ...]

    @property
    def train_ids(self) -> list[str]:
        """Return the ids of all train rows, or nothing when they have none."""
        name = self.target.id_column
        if name not in self.train.table:
            return []
        return _whole_column(self.train, self.public / self.target.train_file, name)

    def labels_of(self, rows: Codes) -> tuple[Labels, ...]:
        """Return the labels of some rows of the test table."""
        return tuple(labels.take(rows) for labels in self.labels)

    def rows_of(self, ids: Sequence[str]) -> Codes:
        """Return which row of the test table each id names, or -1; repeated ids count in turn."""
        rows = pd.Series(np.arange(len(self.ids)), index=_numbered(self.ids))
        return rows.reindex(_numbered(ids)).fillna(-1).to_numpy(np.intp)


def read_evidence(card: Card, target: Target, public: Path, answers: Path) -> LeakEvidence:
    """Read the tables of a task.

    Raises:
        ValueError: when a table cannot be read or the answers lack a test row.
        KeyError: when a column that the card names is missing.
    """
    test = read_written(public / target.test_file, _MOST_TEST_ROWS)
    ids = _whole_column(test, public / target.test_file, target.id_column)
    solved = read_written(answers).table
    rows = pd.Series(np.arange(len(solved)), index=_numbered(solved[target.id_column]))
    found = rows.reindex(_numbered(ids))
    if found.isna().any():
        message = f"{int(found.isna().sum())} test rows have no answer"
        raise ValueError(message)
    truth = solved.iloc[found.to_numpy(np.intp)].reset_index(drop=True)
    if target.kind is TargetKind.TEXT and not test.is_part:
        others = test.table.columns.difference(truth.columns, sort=False)
        truth = truth.join(test.table[others])
    train = read_written(public / target.train_file, _MOST_TRAIN_ROWS)
    return LeakEvidence(
        card=card,
        target=target,
        public=public,
        ids=tuple(ids),
        truth=truth,
        labels=tuple(_labels(target, truth, truth)),
        test=test,
        train=train,
        train_labels=tuple(_labels(target, _like_answers(target, train.table), truth)),
    )


def _whole_column(part: WrittenTable, path: Path, name: str) -> list[str]:
    return read_column(path, name) if part.is_part else part.table[name].tolist()


def _numbered(ids: Sequence[str] | pd.Series) -> pd.MultiIndex:
    names = pd.Series([str(name) for name in ids], dtype=object)
    return pd.MultiIndex.from_arrays([names, names.groupby(names).cumcount()])


def _like_answers(target: Target, train: pd.DataFrame) -> pd.DataFrame:
    """Return the train labels in the columns of the answers, or no columns when they are not."""
    if set(target.columns) <= set(train.columns):
        return train
    for name in target.hidden_columns:
        if name in train and set(train[name]) <= set(target.columns):
            return pd.DataFrame({column: train[name] == column for column in target.columns})
    return pd.DataFrame(index=train.index)


def _labels(target: Target, table: pd.DataFrame, truth: pd.DataFrame) -> Iterator[Labels]:
    """Yield the labels of a table; the classes and their codes are those of the truth."""
    if not set(target.columns) <= set(table.columns):
        return
    if target.kind is TargetKind.TEXT:
        yield from _spans(target.columns[0], table)
    elif len(target.columns) > 1 and target.kind is not TargetKind.NUMBERS:
        yield from _of_classes(
            "label", _highest_column(table[list(target.columns)]), len(target.columns)
        )
    else:
        for name in target.columns:
            yield from _of_column(name, target.kind, table[name], truth[name])


def _of_column(
    name: str, kind: TargetKind, values: pd.Series, truth: pd.Series
) -> Iterator[Labels]:
    numbers, all_numbers = to_numbers(values), to_numbers(truth)
    if kind is not TargetKind.NUMBERS and np.isnan(all_numbers).any():
        names = sorted(set(truth))
        codes = pd.Categorical(values, categories=names).codes.astype(np.float64)
        yield from _of_classes(name, np.where(codes < 0, np.nan, codes), len(names))
        return
    distinct = np.unique(all_numbers[~np.isnan(all_numbers)])
    if kind is not TargetKind.NUMBERS or len(distinct) <= _FEW_VALUES:
        codes = np.searchsorted(distinct, numbers).astype(np.float64)
        codes[~np.isin(numbers, distinct)] = np.nan
        yield from _of_classes(name, codes, len(distinct))
    if kind is TargetKind.NUMBERS:
        ranks = standardised_ranks(numbers)
        yield Labels(name, ranks)
        if len(distinct) > _FEW_VALUES:
            away = standardised_ranks(abs(ranks))
            yield Labels(f"{name}, by its distance from the middle", away)


def _of_classes(name: str, codes: Numbers, classes: int) -> Iterator[Labels]:
    """Yield classes, and their order as numbers where hardly a class has several rows."""
    known = codes[~np.isnan(codes)]
    if 1 < classes <= _MOST_CLASSES:
        yield Labels(name, codes, classes)
    if classes > 2 and 5 * len(np.unique(known)) > len(known):
        yield Labels(name, standardised_ranks(codes))


def _highest_column(indicators: pd.DataFrame) -> Numbers:
    numbers = np.column_stack([to_numbers(indicators[name].astype(str)) for name in indicators])
    codes = np.nan_to_num(numbers).argmax(axis=1).astype(np.float64)
    return np.where(np.isnan(numbers).all(axis=1), np.nan, codes)


def _spans(name: str, table: pd.DataFrame) -> Iterator[Labels]:
    """Yield a chosen part of a text as numbers: where it begins and how long it is.

    Rows where all of the text is chosen have no such label: there it follows from the text.
    """
    source = _source_of(name, table)
    if source is None:
        return
    pairs = list(zip(table[source].str.strip(), table[name].str.strip(), strict=True))
    starts = np.array([float(text.find(part)) for text, part in pairs])
    lengths = np.array([float(len(part)) for _, part in pairs])
    is_all = np.array([len(part) >= len(text) for text, part in pairs])
    without = is_all | (starts < 0)
    for what, values in {"where the text begins": starts, "how long the text is": lengths}.items():
        yield Labels(what, standardised_ranks(np.where(without, np.nan, values)))


def _source_of(name: str, table: pd.DataFrame) -> str | None:
    """Return the column of which a text label is a part in nearly all rows, if there is one."""
    best, most = None, 0.9
    for column in table.columns.drop(name):
        pairs = zip(table[column].str.strip(), table[name].str.strip(), strict=True)
        share = float(np.mean([part in text for text, part in pairs]))
        if share > most:
            best, most = str(column), share
    return best
