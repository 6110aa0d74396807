"""Do ids, or the positions of rows, reveal the label, and are test rows in the train file?

Natural data repeats itself. What counts is how much more often test rows are in the train file
than train rows are there twice.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from reward_server.tasks.base import TargetKind
from reward_server.tasks.leaks.evidence import read_chunks, read_column, to_numbers
from reward_server.tasks.leaks.report import (
    LeakCheck,
    LeakFinding,
    LeakKind,
    Severity,
    fault,
    strongest_by_place,
    weigh,
)
from reward_server.tasks.leaks.strength import ALPHA, Labels, from_neighbours, standardised_ranks
from reward_server.tasks.leaks.views import HIDDEN_SKILL, View, id_numbers, views_of_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pandas as pd

    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.report import WeighedFinding
    from reward_server.tasks.leaks.strength import Codes, Strength

    KeysOf = Callable[[pd.DataFrame], Iterable[str]]

_MOST_IDS = 50_000
_LONGEST_ID = 40
_DISTANCES = range(2, 65)
_ASSOCIATED = 0.1
_TREND = 0.04
_LEAST_SHARE = 0.02
_NOTABLE_SHARE = 0.005
_NOTABLE_CHANCE = 1e-3
_LONG_TEXT = 25
_MOST_COMPARED = 2_000
_MANY_LETTERS = 50
_RUN = 5
_MOST_WORDS = 300
_MOST_OWNERS = 20
_FEWEST_RUNS = 5
_SHARE_OF_RUNS = 0.8
_SPACES = re.compile(r"\s+")
_NOT_WORDS = re.compile(r"[\W_]+")


def check_order(evidence: LeakEvidence) -> LeakCheck:
    """Check ids and the order of rows in the test and sample files."""
    target = evidence.target
    place = f"{target.test_file}:{target.id_column}"
    rows = np.arange(min(len(evidence.ids), _MOST_IDS))
    ids, labels = list(evidence.ids[:_MOST_IDS]), evidence.labels_of(rows)
    found = list(_find_in_order(place, (*labels, *_alphabetical(evidence, rows))))
    if max(map(len, ids), default=0) <= _LONGEST_ID:
        found += [*find_in_ids(place, ids, labels), *_find_beside_train(place, evidence)]
    found += _find_in_sample(f"{evidence.card.sample_submission}:{target.id_column}", evidence)
    part = "" if len(evidence.ids) <= _MOST_IDS else f", the first {_MOST_IDS} only"
    scope = f"{len(evidence.ids)} ids and positions{part}"
    return LeakCheck("ids and order of rows", scope, strongest_by_place(found))


def find_in_ids(
    file: str, ids: Sequence[str], labels: tuple[Labels, ...]
) -> Iterator[WeighedFinding]:
    """Yield what the ids of rows reveal about their labels."""
    for view in views_of_ids(ids):
        for target in labels:
            least = _ASSOCIATED if view.numbers is None else _TREND
            for strength in (view.relate(target), view.associate(target)):
                if strength.beats(least):
                    yield _predicts(file, view.what, strength)


def _predicts(place: str, what: str, strength: Strength) -> WeighedFinding:
    kind = LeakKind.PREDICTIVE_ID if " id" in what else LeakKind.PREDICTIVE_ORDER
    return weigh(kind, place, f"{what} predicts the label", strength)


def _alphabetical(evidence: LeakEvidence, rows: Codes) -> Iterator[Labels]:
    """Yield the position of each text that is asked for in alphabetical order."""
    if evidence.target.kind is TargetKind.TEXT:
        texts = evidence.truth[evidence.target.columns[0]].to_numpy(dtype=str)[rows]
        ranks = np.unique(texts, return_inverse=True)[1].astype(np.float64)
        yield Labels("text", standardised_ranks(ranks))


def _find_in_order(place: str, labels: tuple[Labels, ...]) -> Iterator[WeighedFinding]:
    for target in labels:
        known = target.take(target.known)
        positions = np.arange(len(known.values))
        order = View("the order of the rows", numbers=positions.astype(np.float64))
        if order.predict(known).beats(HIDDEN_SKILL):
            yield _predicts(place, order.what, order.predict(known))
        if order.associate(known).beats(_TREND):
            yield _predicts(place, order.what, order.associate(known))
        for distance in _DISTANCES:
            view = View(f"every row at a distance of {distance}", groups=positions % distance)
            if view.relate(known).beats(HIDDEN_SKILL):
                yield _predicts(place, view.what, view.relate(known))


def _find_in_sample(place: str, evidence: LeakEvidence) -> Iterator[WeighedFinding]:
    sample = evidence.public / evidence.card.sample_submission
    rows = evidence.rows_of(read_column(sample, evidence.target.id_column))
    if (rows < 0).any() or len(rows) != len(evidence.ids):
        yield 1.0, fault(place, "it does not name the rows of the test file")
    if not np.array_equal(rows, np.arange(len(rows))):
        rows = rows[rows >= 0][:_MOST_IDS]
        yield from _find_in_order(place, evidence.labels_of(rows))


def _find_beside_train(place: str, evidence: LeakEvidence) -> Iterator[WeighedFinding]:
    """Yield whether the label of a test row is that of the train rows with the next ids."""
    column = evidence.target.id_column
    if column not in evidence.train.table or evidence.test.is_part:
        return  # a part of the ids has other neighbours than all of them
    train = id_numbers(evidence.train.table[column].tolist())
    test = id_numbers(evidence.test.table[column].tolist())
    for learned, labels in zip(evidence.train_labels, evidence.labels, strict=False):
        left, right = learned.known & np.isfinite(train), labels.known & np.isfinite(test)
        strength = from_neighbours(
            test[right], labels.take(right), (train[left], learned.take(left))
        )
        if strength.beats(HIDDEN_SKILL):
            yield _predicts(place, "the label of the train rows with ids next to it", strength)


def check_overlap(evidence: LeakEvidence) -> LeakCheck:
    """Check for test rows in the train file."""
    train, test = evidence.train, evidence.test
    part = f" (of {test.total})" if test.is_part else ""
    scope = f"{len(test.rows)} test rows{part} in {train.total} train rows"
    findings = (*_same_ids(evidence), *_same_rows(evidence))
    return LeakCheck("overlap of train and test", scope, findings[:3])


def _same_ids(evidence: LeakEvidence) -> Iterator[LeakFinding]:
    target = evidence.target
    if _are_consecutive(evidence.ids):
        return
    shared = len(set(evidence.train_ids).intersection(evidence.ids)) / len(evidence.ids)
    if shared > 0:
        severity = Severity.LEAK if shared >= _LEAST_SHARE else Severity.NOTE
        text = "test ids are in the train file"
        place = f"{target.train_file}:{target.id_column}"
        yield LeakFinding(LeakKind.OVERLAP, place, text, f"{shared:.1%} of the test rows", severity)


def _are_consecutive(ids: Sequence[str]) -> bool:
    numbers = [int(name) for name in ids if name.isdecimal()]
    if len(numbers) < len(ids):
        return False
    return len(set(numbers)) == max(numbers) - min(numbers) + 1


def _same_rows(evidence: LeakEvidence) -> Iterator[LeakFinding]:
    test, train, target = evidence.test.table, evidence.train.table, evidence.target
    hidden = {*target.columns, *target.hidden_columns}
    if not _are_texts(test[target.id_column]):
        hidden.add(target.id_column)
    shared = [x for x in map(str, test) if x in train and x not in hidden]
    if not shared:
        return
    file, kinds = target.train_file, dict(_kinds_of_keys(test, shared))
    chunks = read_chunks(evidence.public / file) if evidence.train.is_part else [train]
    known: dict[str, list[Codes]] = defaultdict(list)
    for chunk in chunks:
        for what, keys_of in kinds.items():
            known[what].append(_hashes(keys_of(chunk)))
    for what, keys_of in kinds.items():
        distinct, counts = np.unique(np.concatenate(known[what]), return_counts=True)
        hits = int(np.isin(_hashes(keys_of(test)), distinct).sum())
        twice = int(counts[counts > 1].sum()), int(counts.sum())
        yield from _compare(file, what, twice, (hits, len(test)))
    for name in shared:
        if _are_texts(test[name]):
            yield from _resembling(file, name, _plain(train, name), _plain(test, name))


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


def _compare(
    file: str, what: str, train: tuple[int, int], test: tuple[int, int]
) -> Iterator[LeakFinding]:
    """Yield whether test keys are in the train file more often than train keys are there twice."""
    (repeated, known), (hits, rows) = train, test
    natural, share = (repeated + 1) / (known + 1), hits / rows
    strength = f"{share:.1%} of the test rows, {natural:.1%} of the train rows are there twice"
    text = f"{what} are in the train file with their labels"
    chance = special.bdtrc(hits - 1, rows, min(1.0, natural)) if hits else 1.0
    if share >= natural + _LEAST_SHARE and chance < ALPHA:
        yield LeakFinding(LeakKind.OVERLAP, file, text, strength)
    elif share >= natural + _NOTABLE_SHARE and hits > 1 and chance < _NOTABLE_CHANCE:
        yield LeakFinding(LeakKind.OVERLAP, file, text, strength, Severity.NOTE)


def _hashes(keys: Iterable[str]) -> Codes:
    return np.fromiter((hash(key) for key in keys), dtype=np.intp)


def _rows(table: pd.DataFrame, names: list[str]) -> Iterator[str]:
    """Yield rows without regard to capitals and spaces."""
    for row in zip(*(table[name].tolist() for name in names), strict=True):
        yield _SPACES.sub("", "\0".join(row).lower())


def _rounded(table: pd.DataFrame, names: list[str]) -> Iterator[str]:
    columns = [[f"{value:.3g}" for value in to_numbers(table[name])] for name in names]
    for row in zip(*columns, strict=True):
        yield "\0".join(row)


def _plain(table: pd.DataFrame, name: str, first: int | None = None, last: int = 0) -> list[str]:
    texts = (_NOT_WORDS.sub(" ", value.lower()).strip() for value in table[name].tolist())
    return [text[-last:][:first] for text in texts]


def _are_texts(values: pd.Series) -> bool:
    return float(values.str.len().median()) >= _LONG_TEXT


def _is_measured(values: pd.Series) -> bool:
    numbers = to_numbers(values)
    return bool(np.isfinite(numbers).mean() > 0.9 and len(set(values)) > len(values) / 4)


def _resembling(file: str, name: str, train: list[str], test: list[str]) -> Iterator[LeakFinding]:
    """Yield whether texts are in the train file with a few words changed."""
    owners: dict[int, list[int]] = defaultdict(list)
    for number, text in enumerate(train):
        for run in _runs_of_words(text):
            owners[run].append(number)
    common = {run for run, numbers in owners.items() if len(numbers) > _MOST_OWNERS}
    some, other = train[:_MOST_COMPARED], test[:_MOST_COMPARED]
    repeated = sum(_resembles(text, owners, common, number) for number, text in enumerate(some))
    hits = sum(_resembles(text, owners, common) for text in other)
    what = f"texts of {name}, slightly changed,"
    yield from _compare(file, what, (repeated, len(some)), (hits, len(other)))


def _resembles(text: str, owners: dict[int, list[int]], common: set[int], itself: int = -1) -> bool:
    """Tell whether most runs of words of a text are in one train text other than itself.

    Runs that are in many texts are phrases and prove nothing.
    """
    runs = _runs_of_words(text) - common
    shared = Counter(owner for run in runs for owner in owners.get(run, ()) if owner != itself)
    return max(shared.values(), default=0) >= max(_FEWEST_RUNS, _SHARE_OF_RUNS * len(runs))


def _runs_of_words(text: str) -> set[int]:
    words = text.split()[:_MOST_WORDS]
    return {hash(tuple(words[n : n + _RUN])) for n in range(len(words) - _RUN + 1)}
