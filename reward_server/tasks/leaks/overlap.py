"""Do rows or files of the test side stand on the train side, where labels are known?

Natural data repeats itself. What counts is how much more often test rows stand in the train
file than train rows stand there twice.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from reward_server.tasks.leaks.evidence import to_numbers
from reward_server.tasks.leaks.report import Finding, Kind, Look, Severity
from reward_server.tasks.leaks.strength import ALPHA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from reward_server.tasks.leaks.evidence import Evidence

_LEAST_SHARE = 0.02
_NOTABLE_SHARE = 0.005
_LONG_TEXT = 25
_NOT_WORDS = re.compile(r"[\W_]+")


def look_at_overlap(evidence: Evidence) -> Look:
    """Look for test rows in the train file."""
    train, test = evidence.train, evidence.test
    part = " (a part of the rows)" if train.is_part or test.is_part else ""
    scope = f"{len(test.rows)} test rows in {len(train.rows)} train rows{part}"
    findings = (*_same_ids(evidence), *_same_rows(evidence))
    return Look("overlap of train and test", scope, findings[:3])


def _same_ids(evidence: Evidence) -> Iterator[Finding]:
    target, train = evidence.target, evidence.train.table
    if target.id_column not in train or _are_counted(evidence.ids):
        return
    shared = len(set(evidence.ids) & set(train[target.id_column])) / len(evidence.ids)
    if shared > 0:
        severity = Severity.LEAK if shared >= _LEAST_SHARE else Severity.NOTE
        text = "test ids stand in the train file"
        place = f"{target.train_file}:{target.id_column}"
        yield Finding(Kind.OVERLAP, place, text, f"{shared:.1%} of the test rows", severity)


def _are_counted(ids: Sequence[str]) -> bool:
    numbers = [int(name) for name in ids if name.isdecimal()]
    if len(numbers) < len(ids):
        return False
    return len(set(numbers)) == max(numbers) - min(numbers) + 1


def _same_rows(evidence: Evidence) -> Iterator[Finding]:
    train, test, file = evidence.train.table, evidence.test.table, evidence.target.train_file
    hidden = {evidence.target.id_column, *evidence.target.columns, *evidence.target.hidden_columns}
    shared = [name for name in test if name in train and name not in hidden]
    if not shared:
        return
    keys = {"test rows": lambda table: _rows(table, shared)}
    numeric = [name for name in shared if _is_measured(test[name])]
    if len(numeric) >= 3:
        keys["test rows, their numbers slightly changed,"] = lambda table: _rounded(table, numeric)
    for name in shared:
        if test[name].str.len().median() >= _LONG_TEXT:
            keys[f"texts of {name}"] = lambda table, name=name: _plain(table[name])
            keys[f"first halves of {name}"] = lambda table, name=name: _half(table[name], 0)
            keys[f"last halves of {name}"] = lambda table, name=name: _half(table[name], 1)
    for what, key in keys.items():
        yield from _compare(file, what, key(train), key(test))


def _compare(file: str, what: str, train: list[str], test: list[str]) -> Iterator[Finding]:
    """Yield whether test keys stand in the train file more often than train keys do twice."""
    counts = Counter(train)
    natural = (sum(counts[key] > 1 for key in train) + 1) / (len(train) + 1)
    hits = sum(key in counts for key in test)
    share = hits / len(test)
    told = f"{share:.1%} of the test rows, {natural:.1%} of the train rows stand there twice"
    text = f"{what} stand in the train file with their labels"
    chance = stats.binom.sf(hits - 1, len(test), min(1.0, natural))
    if share >= natural + _LEAST_SHARE and chance < ALPHA:
        yield Finding(Kind.OVERLAP, file, text, told)
    elif share >= natural + _NOTABLE_SHARE and hits > 1 and chance < 1e-3:
        yield Finding(Kind.OVERLAP, file, text, told, Severity.NOTE)


def _rows(table: pd.DataFrame, names: list[str]) -> list[str]:
    columns: list[list[str]] = [_loose(table[name]) for name in names]
    return ["\0".join(row) for row in zip(*columns, strict=True)]


def _loose(values: pd.Series) -> list[str]:
    return [" ".join(value.lower().split()) for value in values]


def _plain(values: pd.Series) -> list[str]:
    return [_NOT_WORDS.sub(" ", value.lower()).strip() for value in values]


def _half(values: pd.Series, half: int) -> list[str]:
    return [
        text[: len(text) // 2] if half == 0 else text[len(text) // 2 :] for text in _plain(values)
    ]


def _is_measured(values: pd.Series) -> bool:
    numbers = to_numbers(values)
    return bool(np.isfinite(numbers).mean() > 0.9 and len(set(values)) > len(values) / 4)


def _rounded(table: pd.DataFrame, names: list[str]) -> list[str]:
    columns = [[f"{value:.3g}" for value in to_numbers(table[name])] for name in names]
    return ["\0".join(row) for row in zip(*columns, strict=True)]


KeyOf = "Callable[[pd.DataFrame], list[str]]"
