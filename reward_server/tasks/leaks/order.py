"""Do ids, or the places of rows in a file, tell the label?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.base import TargetKind
from reward_server.tasks.leaks.columns import association_of, find_in_ids, tell
from reward_server.tasks.leaks.differences import lag, trend
from reward_server.tasks.leaks.report import (
    LeakCheck,
    LeakFinding,
    LeakKind,
    Severity,
    strongest_by_place,
)
from reward_server.tasks.leaks.strength import (
    Labels,
    from_train_neighbours,
    standardised_ranks,
)
from reward_server.tasks.leaks.tables import read_column
from reward_server.tasks.leaks.views import View, views_of_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reward_server.tasks.leaks.columns import Found
    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.strength import Codes, Strength

_MOST_ROWS = 50_000
_MOST_LETTERS = 40
_LAGS = range(1, 65)
_MODULI = range(2, 33)
_TELLING = 0.2
_TREND = 0.04


def look_at_order(evidence: LeakEvidence) -> LeakCheck:
    """Look at ids and at the order of rows in the test and sample files."""
    target, sample = evidence.target, evidence.card.sample_submission
    place = f"{target.test_file}:{target.id_column}"
    ids, rows = list(evidence.ids[:_MOST_ROWS]), np.arange(min(len(evidence.ids), _MOST_ROWS))
    labels = evidence.labels_of(rows)
    found: list[Found] = list(_find_in_order(place, (*labels, *_alphabetical(evidence, rows))))
    if max(map(len, ids), default=0) <= _MOST_LETTERS:
        found += [*_find_trend_of_ids(place, ids, labels), *_find_beside_train(place, evidence)]
        found += find_in_ids(place, ids, labels)
    found += _find_in_sample(f"{sample}:{target.id_column}", evidence)
    part = "" if len(evidence.ids) <= _MOST_ROWS else f", the first {_MOST_ROWS} only"
    scope = f"{len(evidence.ids)} ids and places{part}"
    return LeakCheck("ids and order of rows", scope, strongest_by_place(found))


def _alphabetical(evidence: LeakEvidence, rows: Codes) -> Iterator[Labels]:
    """Yield the place of each text that is asked for in the order of their letters."""
    if evidence.target.kind is TargetKind.TEXT:
        texts = evidence.truth[evidence.target.columns[0]].to_numpy(dtype=str)[rows]
        places = np.unique(texts, return_inverse=True)[1].astype(np.float64)
        yield Labels("text", standardised_ranks(places))


def _find_in_sample(place: str, evidence: LeakEvidence) -> Iterator[Found]:
    sample = evidence.public / evidence.card.sample_submission
    ids = read_column(sample, evidence.target.id_column)
    rows = evidence.rows_of(ids)
    if (rows < 0).any() or len(rows) != len(evidence.ids):
        text = "it does not name the rows of the test file"
        yield 1.0, LeakFinding(LeakKind.DAMAGED, place, text, severity=Severity.FAULT)
    if not np.array_equal(rows, np.arange(len(rows))):
        rows = rows[rows >= 0][:_MOST_ROWS]
        yield from _find_in_order(place, evidence.labels_of(rows))


def _find_in_order(place: str, labels: tuple[Labels, ...]) -> Iterator[Found]:
    for target in labels:
        known = target.take(target.known)
        places = np.arange(len(known.values))
        order = View("the order of the rows", numbers=places.astype(np.float64))
        strengths = {"the order of the rows": tell(order, known)}
        for distance in _LAGS:
            if distance < len(places):
                strengths[f"the row {distance} before"] = lag(known, distance)
        for modulus in _MODULI:
            view = View("", groups=places % modulus)
            strengths[f"every row at a distance of {modulus}"] = tell(view, known)
            strengths[f"the rows at a distance of {modulus}"] = association_of(view, known)
        for what, strength in strengths.items():
            if strength.beats(_TELLING):
                yield _found(place, f"{what} tells the label", strength)
        yield from _rising(place, "the order of the rows", trend(places.astype(np.float64), known))


def _find_trend_of_ids(
    place: str, ids: Sequence[str], labels: tuple[Labels, ...]
) -> Iterator[Found]:
    for view in views_of_ids(ids):
        if view.numbers is None:
            continue
        for target in labels:
            known = target.known & np.isfinite(view.numbers)
            yield from _rising(place, view.what, trend(view.numbers[known], target.take(known)))


def _rising(place: str, what: str, strength: Strength) -> Iterator[Found]:
    if strength.beats(_TREND):
        yield _found(place, f"{what} follows the labels", strength)


def _find_beside_train(place: str, evidence: LeakEvidence) -> Iterator[Found]:
    """Yield whether the label of a test row is that of the train rows with the next ids."""
    column = evidence.target.id_column
    if column not in evidence.train.table or evidence.test.is_part:
        return  # a part of the ids has other neighbours than all of them
    numbers = [
        next(view.numbers for view in views_of_ids(list(names)) if view.numbers is not None)
        for names in (evidence.train.table[column], evidence.test.table[column])
    ]
    for learnt, asked in zip(evidence.train_labels, evidence.labels, strict=False):
        known, wanted = (
            learnt.known & np.isfinite(numbers[0]),
            asked.known & np.isfinite(numbers[1]),
        )
        strength = from_train_neighbours(
            numbers[0][known], learnt.take(known), numbers[1][wanted], asked.take(wanted)
        )
        if strength.beats(_TELLING):
            yield _found(place, "train rows with ids next to it tell the label", strength)


def _found(place: str, reason: str, strength: Strength) -> Found:
    kind = LeakKind.TELLING_ID if "id" in reason.split() else LeakKind.TELLING_ORDER
    return strength.skill, LeakFinding(kind, place, reason, strength.text)
