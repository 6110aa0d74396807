"""What the lint works on: the public tables as written, and the labels in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from reward_server.tasks.base import TargetKind
from reward_server.tasks.leaks.strength import Labels, standardised_ranks
from reward_server.tasks.leaks.tables import WrittenTable, read_column, read_written, take_part

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reward_server.tasks.base import Card, Target
    from reward_server.tasks.leaks.strength import Codes, Numbers

MOST_ROWS = 8_000
_MOST_TRAIN_ROWS = 20_000
_MOST_CLASSES = 200
_FEW_VALUES = 20
_WORDS = {"true": "1", "false": "0"}


@dataclass(frozen=True, slots=True)
class LeakEvidence:
    """The tables of a task with a target, and the answers in the order of the test table."""

    card: Card
    target: Target
    public: Path
    answers: Path
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
        places = pd.Series(np.arange(len(self.ids)), index=_numbered(self.ids))
        return places.reindex(_numbered(ids)).fillna(-1).to_numpy(np.intp)


def read_evidence(card: Card, target: Target, public: Path, answers: Path) -> LeakEvidence:
    """Read the tables of a task; large ones in part.

    Raises:
        ValueError: when a table cannot be read or the answers lack a test row.
        KeyError: when a column that the card names is missing.
    """
    test = read_written(public / target.test_file, MOST_ROWS)
    ids = _whole_column(test, public / target.test_file, target.id_column)
    solved = read_written(answers, 1 << 62).table
    places = pd.Series(np.arange(len(solved)), index=_numbered(solved[target.id_column]))
    found = places.reindex(_numbered(ids))
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
        answers=answers,
        ids=tuple(ids),
        truth=truth,
        labels=_labels(target, truth, truth),
        test=test,
        train=train,
        train_labels=_labels(target, _like_answers(target, train.table), truth),
    )


def _whole_column(part: WrittenTable, path: Path, name: str) -> list[str]:
    return read_column(path, name) if part.is_part else part.table[name].tolist()


def part_of_test(table: pd.DataFrame) -> WrittenTable:
    """Return at most as many rows of a table as are read of the test table."""
    return take_part(table, MOST_ROWS)


def to_numbers(values: pd.Series) -> Numbers:
    """Return written values as numbers, and NaN for what is none."""
    words = [_WORDS.get(value.lower(), value) for value in map(str.strip, values.tolist())]
    numbers = np.asarray(pd.to_numeric(np.array(words, dtype=object), errors="coerce"), np.float64)
    return np.where(np.isinf(numbers), np.nan, numbers)


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


def _labels(target: Target, table: pd.DataFrame, truth: pd.DataFrame) -> tuple[Labels, ...]:
    if not set(target.columns) <= set(table.columns):
        return ()
    if target.kind is TargetKind.TEXT:
        return _selections(target.columns[0], table)
    if len(target.columns) > 1 and target.kind is not TargetKind.NUMBERS:
        codes = _argmax(table[list(target.columns)])
        return tuple(_of_classes("label", codes, len(target.columns)))
    found: list[Labels] = []
    for name in target.columns:
        numbers, all_numbers = to_numbers(table[name]), to_numbers(truth[name])
        if target.kind is not TargetKind.NUMBERS and np.isnan(all_numbers).any():
            known = sorted(set(truth[name]))
            codes = pd.Categorical(table[name], categories=known).codes.astype(np.float64)
            found += _of_classes(name, np.where(codes < 0, np.nan, codes), len(known))
            continue
        values = np.unique(all_numbers[~np.isnan(all_numbers)])
        if target.kind is not TargetKind.NUMBERS or len(values) <= _FEW_VALUES:
            codes = np.searchsorted(values, numbers).astype(np.float64)
            known_codes = np.isin(numbers, values)
            found += _of_classes(name, np.where(known_codes, codes, np.nan), len(values))
        if target.kind is TargetKind.NUMBERS:
            ranks = standardised_ranks(numbers)
            found.append(Labels(name, ranks))
            away = Labels(
                f"{name}, by its distance from the middle", standardised_ranks(abs(ranks))
            )
            found += [away] if len(values) > _FEW_VALUES else []
    return tuple(found)


def _of_classes(name: str, codes: Numbers, classes: int) -> list[Labels]:
    """Return classes, and their order as numbers where hardly a class has several rows."""
    known = codes[~np.isnan(codes)]
    found = [Labels(name, codes, classes)] if 1 < classes <= _MOST_CLASSES else []
    if classes > 2 and 5 * len(np.unique(known)) > len(known):
        found.append(Labels(name, standardised_ranks(codes)))
    return found


def _argmax(indicators: pd.DataFrame) -> Numbers:
    numbers = np.column_stack([to_numbers(indicators[name].astype(str)) for name in indicators])
    codes = np.nan_to_num(numbers).argmax(axis=1).astype(np.float64)
    return np.where(np.isnan(numbers).all(axis=1), np.nan, codes)


def _selections(name: str, table: pd.DataFrame) -> tuple[Labels, ...]:
    """Return what a chosen part of a text is by number: where it begins and how long it is.

    Rows where all of the text is chosen have no such label: there it follows from the text.
    """
    source = source_of(name, table)
    if source is None:
        return ()
    pairs = list(zip(table[source].str.strip(), table[name].str.strip(), strict=True))
    starts = np.array([float(text.find(part)) for text, part in pairs])
    lengths = np.array([float(len(part)) for _, part in pairs])
    is_all = np.array([len(part) >= len(text) for text, part in pairs])
    without = is_all | (starts < 0)
    return (
        Labels("where the text begins", standardised_ranks(np.where(without, np.nan, starts))),
        Labels("how long the text is", standardised_ranks(np.where(without, np.nan, lengths))),
    )


def source_of(name: str, table: pd.DataFrame) -> str | None:
    """Return the column of which a text label is a part in nearly all rows, if there is one."""
    best, most = None, 0.9
    for column in table.columns.drop(name):
        pairs = zip(table[column].str.strip(), table[name].str.strip(), strict=True)
        share = float(np.mean([part in text for text, part in pairs]))
        if share > most:
            best, most = str(column), share
    return best
