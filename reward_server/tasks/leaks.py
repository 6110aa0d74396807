"""The leak lint: does anything public give the hidden labels away?

It looks at one column at a time and at the order of rows and ids. A combination of columns
that gives a label away is a model and not a leak, so it is not looked for; neither are files
other than the train, test and sample submission tables, nor labels that are free text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype
from scipy import stats
from sklearn.metrics import adjusted_mutual_info_score, roc_auc_score

from reward_server.tasks.base import Target, TargetKind
from reward_server.tasks.tables import parse_csv

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reward_server.tasks.base import Card

_NEAR_PERFECT = 0.98
_CHANCE = 1e-9
_SIGMAS = 5.0
_TREND = 0.2
_REPEATED_SHARE = 0.05

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Leak:
    """A public place that gives labels away, and how."""

    place: str
    reason: str


def find_leaks(card: Card, public: Path, answers: Path) -> tuple[Leak, ...]:
    """Return every leak the lint knows to look for."""
    target = card.target
    if target is None:
        return ()
    train, test = read_table(public / target.train_file), read_table(public / target.test_file)
    sample = read_table(public / card.sample_submission)
    truth = read_table(answers).set_index(target.id_column)
    leaks = [*_hidden_columns(target, test), *_repeated_rows(target, train, test)]
    if target.kind is not TargetKind.TEXT:
        for labels in _labels(target, truth.loc[test[target.id_column]]):
            leaks += _telling_columns(target.test_file, test, target.id_column, labels)
            leaks += _telling_order(target.test_file, test[target.id_column], labels)
        for labels in _labels(target, truth.loc[sample[target.id_column]]):
            leaks += _telling_columns(card.sample_submission, sample, target.id_column, labels)
    return tuple(dict.fromkeys(leaks))


def read_table(path: Path) -> pd.DataFrame:
    """Read a public table, CSV or JSON records, with nested values as text."""
    if path.suffix != ".json":
        return parse_csv(path.read_bytes())
    table = pd.DataFrame(json.loads(path.read_bytes()))
    nested = [name for name in table if table[name].map(type).isin((list, dict)).any()]
    return table.assign(**{str(name): table[name].map(json.dumps) for name in nested})


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels of one target, in the order of a public table: a number or an indicator each."""

    columns: tuple[Numbers, ...]
    are_classes: bool

    @property
    def codes(self) -> NDArray[np.intp]:
        return np.asarray(np.argmax(np.column_stack(self.columns), axis=1))


def _labels(target: Target, truth: pd.DataFrame) -> Iterator[_Labels]:
    values = truth[list(target.columns)]
    if target.kind is TargetKind.NUMBERS:
        for name in target.columns:
            yield _Labels((values[name].to_numpy(np.float64),), are_classes=False)
        return
    one_hot = pd.get_dummies(values.iloc[:, 0]) if values.shape[1] == 1 else values
    indicators = one_hot.loc[:, (one_hot != one_hot.iloc[0]).any()].to_numpy(np.float64)
    yield _Labels(tuple(indicators.T), are_classes=True)


def _hidden_columns(target: Target, test: pd.DataFrame) -> Iterator[Leak]:
    for name in sorted({*target.hidden_columns, *target.columns} & set(test.columns)):
        yield Leak(f"{target.test_file}:{name}", "the label itself stands in the test file")


def _repeated_rows(target: Target, train: pd.DataFrame, test: pd.DataFrame) -> Iterator[Leak]:
    ids = test[target.id_column]
    are_counted = is_numeric_dtype(ids.dtype) and len(set(ids)) == ids.max() - ids.min() + 1
    if not are_counted and target.id_column in train and ids.isin(train[target.id_column]).any():
        yield Leak(f"{target.train_file}:{target.id_column}", "test ids stand in the train file")
    shared = [name for name in test if name in train and name != target.id_column]
    rows = pd.MultiIndex.from_frame(test[shared].astype(str))
    known = pd.MultiIndex.from_frame(train[shared].astype(str))
    if shared and rows.isin(known).mean() > _REPEATED_SHARE:
        yield Leak(target.train_file, "test rows stand in the train file with their labels")


def _telling_columns(
    file: str, table: pd.DataFrame, id_column: str, labels: _Labels
) -> Iterator[Leak]:
    for name in table.columns.drop(id_column):
        reason = _why_telling(table[name], labels)
        if reason is not None:
            yield Leak(f"{file}:{name}", reason)


def _why_telling(values: pd.Series, labels: _Labels) -> str | None:
    groups = pd.factorize(values.astype(str))[0]
    views = list(_numeric_views(values, groups))
    if any(_strength(view, column) > _NEAR_PERFECT for view in views for column in labels.columns):
        return "the order of its values is nearly the order of the labels"
    if not labels.are_classes:
        return "its values group the labels" if _explains(groups, labels.columns[0]) else None
    if adjusted_mutual_info_score(labels.codes, groups) > _NEAR_PERFECT:
        return "its values map to the labels"
    is_rare = (groups != np.bincount(groups).argmax()).astype(np.intp)
    if any(_is_pure(members, column) for members in (groups, is_rare) for column in labels.columns):
        return "some of its values occur with one label alone"
    return None


def _numeric_views(values: pd.Series, groups: NDArray[np.intp]) -> Iterator[Numbers]:
    if is_numeric_dtype(values.dtype):
        yield values.fillna(values.median()).to_numpy(np.float64)
    else:
        yield np.asarray(values.astype(str).str.len(), dtype=np.float64)
    yield (groups == np.bincount(groups).argmax()).astype(np.float64)


def _strength(view: Numbers, labels: Numbers) -> float:
    """Return how well one number orders the labels, from 0 to 1."""
    if len(np.unique(view)) == 1:
        return 0.0
    if set(np.unique(labels)) <= {0.0, 1.0}:
        return float(abs(2 * roc_auc_score(labels, view) - 1))
    return float(abs(stats.spearmanr(view, labels).statistic))


def _explains(groups: NDArray[np.intp], labels: Numbers) -> bool:
    table = pd.DataFrame({"group": groups, "label": labels})
    repeated = table[table.groupby("group")["label"].transform("size") > 1]
    if len(repeated) < len(table) / 2 or repeated["label"].var() == 0:
        return False
    spread = repeated["label"] - repeated.groupby("group")["label"].transform("mean")
    return bool((spread**2).mean() < (1 - _NEAR_PERFECT) * repeated["label"].var())


def _is_pure(groups: NDArray[np.intp], labels: Numbers) -> bool:
    """Tell whether some group has almost one label alone, beyond what chance would do."""
    sizes, hits = np.bincount(groups), np.bincount(groups, weights=labels)
    base = labels.mean()
    for share, count in ((base, hits), (1 - base, sizes - hits)):
        unlikely = stats.binom.sf(count - 1, sizes, share) < _CHANCE
        if np.any(unlikely & (count >= _NEAR_PERFECT * sizes)):
            return True
    return False


def _telling_order(file: str, ids: pd.Series, labels: _Labels) -> Iterator[Leak]:
    orders = {"the order of the rows": np.arange(len(ids), dtype=np.float64)}
    orders["the order of the ids"] = np.asarray(ids.rank(), dtype=np.float64)
    digits = pd.to_numeric(ids.astype(str).str.replace(r"\D", "", regex=True), errors="coerce")
    orders["the number in the id"] = np.asarray(digits.fillna(0), dtype=np.float64)
    for what, order in orders.items():
        strength = max(_strength(order, column) for column in labels.columns)
        if strength > max(_TREND, _SIGMAS / np.sqrt(_effective_rows(labels))):
            yield Leak(f"{file}:{ids.name}", f"{what} follows the labels")


def _effective_rows(labels: _Labels) -> float:
    """Return the number of rows that would make an order's strength vary as much by chance."""
    if not labels.are_classes:
        return float(len(labels.columns[0]))
    total = len(labels.columns[0])
    fewest = min(min(column.sum(), total - column.sum()) for column in labels.columns)
    return float(3 * fewest * (total - fewest) / (total + 1))
