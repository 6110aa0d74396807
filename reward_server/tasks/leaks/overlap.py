"""Do rows of the test file stand in the train file, where labels are known?

Natural data repeats itself. What counts is how much more often test rows stand in the train
file than train rows stand there twice. Of a train file too large to be held, every row is
compared as a whole, and its texts and numbers are not compared by themselves.
"""

from __future__ import annotations

import csv
import re
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from reward_server.tasks.leaks.evidence import to_numbers
from reward_server.tasks.leaks.report import LeakCheck, LeakFinding, LeakKind, Severity
from reward_server.tasks.leaks.resemblance import KnownTexts
from reward_server.tasks.leaks.strength import ALPHA
from reward_server.tasks.leaks.tables import MOST_BYTES, parse_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import pandas as pd

    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.strength import Codes

    KeysOf = Callable[[pd.DataFrame], Iterable[str]]

_LEAST_SHARE = 0.02
_NOTABLE_SHARE = 0.005
_LONG_TEXT = 25
_MOST_TEXTS = 20_000
_MOST_COMPARED = 2_000
_MANY_LETTERS = 50
_SPACES = re.compile(r"\s+")
_NOT_WORDS = re.compile(r"[\W_]+")


def look_at_overlap(evidence: LeakEvidence) -> LeakCheck:
    """Look for test rows in the train file."""
    train, test = evidence.train, evidence.test
    part = f" (of {test.total})" if test.is_part else ""
    scope = f"{len(test.rows)} test rows{part} in {train.total} train rows"
    findings = (*_same_ids(evidence), *_same_rows(evidence))
    return LeakCheck("overlap of train and test", scope, findings[:3])


def _same_ids(evidence: LeakEvidence) -> Iterator[LeakFinding]:
    target = evidence.target
    if _are_counted(evidence.ids):
        return
    shared = len(set(evidence.train_ids).intersection(evidence.ids)) / len(evidence.ids)
    if shared > 0:
        severity = Severity.LEAK if shared >= _LEAST_SHARE else Severity.NOTE
        text = "test ids stand in the train file"
        place = f"{target.train_file}:{target.id_column}"
        yield LeakFinding(LeakKind.OVERLAP, place, text, f"{shared:.1%} of the test rows", severity)


def _are_counted(ids: Sequence[str]) -> bool:
    numbers = [int(name) for name in ids if name.isdecimal()]
    if len(numbers) < len(ids):
        return False
    return len(set(numbers)) == max(numbers) - min(numbers) + 1


def _same_rows(evidence: LeakEvidence) -> Iterator[LeakFinding]:
    test, target = evidence.test.table, evidence.target
    hidden = {*target.columns, *target.hidden_columns}
    if not _are_texts(test[target.id_column]):
        hidden.add(target.id_column)
    shared = [x for x in map(str, test) if x in evidence.train.table and x not in hidden]
    if not shared:
        return
    file, path = target.train_file, evidence.public / target.train_file
    if evidence.train.is_part and path.stat().st_size > MOST_BYTES:
        known = _hashes(_stream(path, shared))
        yield from _compare(file, "test rows", known, _hashes(_rows(test, shared)))
        return
    train = evidence.train.table
    if evidence.train.is_part:
        train = parse_written(path.read_bytes(), path.suffix)
    for what, keys_of in _kinds_of_keys(test, shared):
        yield from _compare(file, what, _hashes(keys_of(train)), _hashes(keys_of(test)))
    for name in shared:
        if _are_texts(test[name]):
            yield from _resembling(file, name, list(_plain(train, name)), list(_plain(test, name)))


def _kinds_of_keys(test: pd.DataFrame, shared: list[str]) -> Iterator[tuple[str, KeysOf]]:
    """Yield what two rows may have in common, and how to get it from a table."""
    yield "test rows", partial(_rows, names=shared)
    measured = [name for name in shared if _is_measured(test[name])]
    if len(measured) >= 3:
        yield "test rows, their numbers slightly changed,", partial(_rounded, names=measured)
    for name in shared:
        if _are_texts(test[name]):
            yield f"texts of {name}", partial(_plain, name=name)
            yield f"beginnings of {name}", partial(_plain, name=name, first=_MANY_LETTERS)
            yield f"ends of {name}", partial(_plain, name=name, last=_MANY_LETTERS)


def _compare(file: str, what: str, train: Codes, test: Codes) -> Iterator[LeakFinding]:
    """Yield whether test keys stand in the train file more often than train keys do twice."""
    known, counts = np.unique(train, return_counts=True)
    repeated = int(counts[counts > 1].sum())
    hits = int(np.isin(test, known).sum())
    yield from _judge(file, what, (repeated, len(train)), (hits, len(test)))


def _resembling(file: str, name: str, train: list[str], test: list[str]) -> Iterator[LeakFinding]:
    step = max(1, len(train) // _MOST_TEXTS)
    known = KnownTexts(train[::step])
    some, asked = train[::step][:_MOST_COMPARED], test[:_MOST_COMPARED]
    repeated = sum(known.resembles(text, number) for number, text in enumerate(some))
    hits = sum(known.resembles(text) for text in asked)
    what = f"texts of {name}, slightly changed,"
    yield from _judge(file, what, (repeated, len(some)), (hits, len(asked)))


def _judge(
    file: str, what: str, train: tuple[int, int], test: tuple[int, int]
) -> Iterator[LeakFinding]:
    (repeated, known), (hits, asked) = train, test
    natural, share = (repeated + 1) / (known + 1), hits / asked
    told = f"{share:.1%} of the test rows, {natural:.1%} of the train rows stand there twice"
    text = f"{what} stand in the train file with their labels"
    chance = stats.binom.sf(hits - 1, asked, min(1.0, natural))
    if share >= natural + _LEAST_SHARE and chance < ALPHA:
        yield LeakFinding(LeakKind.OVERLAP, file, text, told)
    elif share >= natural + _NOTABLE_SHARE and hits > 1 and chance < 1e-3:
        yield LeakFinding(LeakKind.OVERLAP, file, text, told, Severity.NOTE)


def _hashes(keys: Iterable[str]) -> Codes:
    return np.fromiter((hash(key) for key in keys), dtype=np.intp)


def _stream(path: Path, names: list[str]) -> Iterator[str]:
    with path.open("r", encoding="utf-8", errors="replace", newline="") as file:
        lines = csv.reader(file)
        header = next(lines)
        places = [header.index(name) for name in names]
        for row in lines:
            if len(row) == len(header):
                yield _loose([row[place] for place in places])


def _rows(table: pd.DataFrame, names: list[str]) -> Iterator[str]:
    for row in zip(*(table[name].tolist() for name in names), strict=True):
        yield _loose(row)


def _loose(fields: Sequence[str]) -> str:
    """Return a row without regard to capitals and spaces."""
    return _SPACES.sub("", "\0".join(fields).lower())


def _plain(
    table: pd.DataFrame, name: str, first: int | None = None, last: int = 0
) -> Iterator[str]:
    for value in table[name].tolist():
        yield _NOT_WORDS.sub(" ", value.lower()).strip()[-last:][:first]


def _are_texts(values: pd.Series) -> bool:
    return float(values.str.len().median()) >= _LONG_TEXT


def _is_measured(values: pd.Series) -> bool:
    numbers = to_numbers(values)
    return bool(np.isfinite(numbers).mean() > 0.9 and len(set(values)) > len(values) / 4)


def _rounded(table: pd.DataFrame, names: list[str]) -> Iterator[str]:
    columns = [[f"{value:.3g}" for value in to_numbers(table[name])] for name in names]
    for row in zip(*columns, strict=True):
        yield "\0".join(row)
