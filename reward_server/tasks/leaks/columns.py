"""Does one column of a public table tell the label, alone?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from reward_server.tasks.leaks.differences import association, purest, trend
from reward_server.tasks.leaks.evidence import to_numbers
from reward_server.tasks.leaks.report import LeakFinding, LeakKind, Severity
from reward_server.tasks.leaks.strength import (
    NOTHING,
    Labels,
    Strength,
    by_groups,
    by_neighbours,
    from_train_groups,
    from_train_neighbours,
    guessed,
)
from reward_server.tasks.leaks.views import View, codes_of, views_of, views_of_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# A single natural column that reaches this much has left nothing to a model.
_TELLING = {True: 0.6, False: 0.9}
_NOTABLE = {True: 0.4, False: 0.8}
# What has no business to tell anything, or tells more than it does in the train data.
_HIDDEN = 0.2
_ASSOCIATED = 0.1
_MORE_THAN_TRAIN = 0.2
_DOUBTS = 5
_SHARE_OF_LABEL = 0.02

Found = tuple[float, LeakFinding]


@dataclass(frozen=True, slots=True)
class Side:
    """A table and the labels of its rows."""

    table: pd.DataFrame
    labels: tuple[Labels, ...]


def find_in_table(
    file: str, side: Side, train: Side | None = None, skipped: Iterable[str] = ()
) -> Iterator[Found]:
    """Yield what the columns of a table tell about the labels of its rows.

    `train` is what a program may learn from; a column it lacks is expected to tell nothing.
    """
    for name in side.table.columns.drop(list(skipped), errors="ignore"):
        known = None if train is None or name not in train.table else train
        for finding in _find_in_column(f"{file}:{name}", side, str(name), known):
            is_new = train is not None and known is None
            yield from _judge(finding, is_new=is_new)


@dataclass(frozen=True, slots=True)
class _Told:
    """How much one view of one column tells."""

    place: str
    view: View
    labels: Labels
    strength: Strength
    in_train: Strength
    natural: float
    partly: str | None


def _find_in_column(place: str, side: Side, name: str, train: Side | None) -> Iterator[_Told]:
    views = list(views_of(side.table[name]))
    known_views: list[View] = []
    for number, labels in enumerate(side.labels):
        natural = 0.0
        for view in views:
            strength = tell(view, labels)
            if not view.is_hidden:
                natural = max(natural, strength.skill)
            in_train = NOTHING
            if train is not None and number < len(train.labels) and strength.beats(_HIDDEN):
                known_views = known_views or list(views_of(train.table[name]))
                in_train = _tell_like(view, known_views, train.labels[number])
            partly = None if view.numbers is not None else _partly(view, side.table[name], labels)
            yield _Told(place, view, labels, strength, in_train, natural, partly)
        if train is not None and number < len(train.labels):
            strength = _from_train(
                side.table[name], labels, train.table[name], train.labels[number]
            )
            view = View("train rows with such values")
            yield _Told(place, view, labels, strength, strength, 0.0, None)


def _judge(told: _Told, *, is_new: bool) -> Iterator[Found]:
    strength, is_classes = told.strength, told.labels.classes > 0
    reason = f"{told.view.what} tell{'' if told.view.what.endswith('s') else 's'} the label"
    reason += "" if told.labels.name == "label" else f" {told.labels.name}"

    def found(kind: LeakKind, text: str, severity: Severity = Severity.LEAK) -> Found:
        return strength.skill, LeakFinding(kind, told.place, text, strength.text, severity)

    if told.view.is_hidden:
        is_plain = told.natural < _ASSOCIATED
        differs = association_of(told.view, told.labels) if is_plain else NOTHING
        more = strength.beats(max(_HIDDEN, told.natural + _ASSOCIATED))
        if more or differs.beats(_HIDDEN):
            yield found(LeakKind.HIDDEN_CHANNEL, reason)
    elif strength.beats(_TELLING[is_classes]):
        yield found(LeakKind.TELLING_COLUMN, reason)
    elif is_new and (
        strength.beats(_HIDDEN) or association_of(told.view, told.labels).beats(_ASSOCIATED)
    ):
        yield found(LeakKind.TELLING_COLUMN, f"{reason}, and the train file has no such column")
    elif strength.beats(_HIDDEN) and _is_more(strength, told.in_train):
        yield found(LeakKind.TELLING_COLUMN, f"{reason} far better than in the train file")
    elif strength.beats(_NOTABLE[is_classes]):
        yield found(LeakKind.TELLING_COLUMN, f"{reason} well", Severity.NOTE)
    if told.partly is not None:
        text = "some of its values occur with one label alone"
        yield 0.5, LeakFinding(LeakKind.PARTLY_TELLING, told.place, text, told.partly)


def _is_more(strength: Strength, in_train: Strength) -> bool:
    """Tell whether something tells more than it does in the train data, and not by chance."""
    if not in_train.rows:
        return False
    doubt = float(np.sqrt(1 / strength.rows + 1 / in_train.rows))
    return strength.skill - in_train.skill > max(_MORE_THAN_TRAIN, _DOUBTS * doubt)


def tell(view: View, labels: Labels) -> Strength:
    """Return how much a view tells about the labels."""
    known = labels.known
    if view.numbers is not None:
        known &= np.isfinite(view.numbers)
        return by_neighbours(view.numbers[known], labels.take(known))
    if view.groups is not None and known.any():
        return by_groups(view.groups[known], labels.take(known))
    return NOTHING


def association_of(view: View, labels: Labels) -> Strength:
    """Return how far the labels differ between the groups of a view, or along its numbers."""
    known = labels.known
    if view.numbers is not None:
        known &= np.isfinite(view.numbers)
        return trend(view.numbers[known], labels.take(known))
    if view.groups is None or not known.any():
        return NOTHING
    return association(view.groups[known], labels.take(known))


def _tell_like(view: View, views: list[View], labels: Labels) -> Strength:
    same = (other for other in views if _is_like(other, view))
    return next((tell(other, labels) for other in same), Strength(0.0, 1.0, len(labels.values)))


def _is_like(view: View, other: View) -> bool:
    return view.what == other.what and (view.groups is None) == (other.groups is None)


def _partly(view: View, values: pd.Series, labels: Labels) -> str | None:
    """Say which share of a label can be read off some values, if any; not which values."""
    known = labels.known
    if view.groups is None or view.is_hidden or not labels.classes or not known.any():
        return None
    written = values.to_numpy()[known]
    groups, known_labels = view.groups[known], labels.take(known)
    is_rare = (groups != np.bincount(groups).argmax()).astype(np.intp)
    for members in (groups, is_rare):
        pure = purest(members, known_labels)
        if pure is not None and pure.share_of_label >= _SHARE_OF_LABEL:
            some = len(set(written[members == pure.group]))
            share = f"{pure.share_of_label:.0%} of the rows of one label"
            return f"{share}, {pure.rows} rows with {some} different values"
    return None


def _from_train(
    values: pd.Series, labels: Labels, train: pd.Series, train_labels: Labels
) -> Strength:
    known, known_train = labels.known, train_labels.known
    together = codes_of([*train[known_train].tolist(), *values[known].tolist()])
    parts = together[: known_train.sum()], together[known_train.sum() :]
    learnt, asked = train_labels.take(known_train), labels.take(known)
    best = from_train_groups(parts[0], learnt, parts[1], asked)
    left, right = (
        pd.to_numeric(part, errors="coerce").to_numpy(np.float64) for part in (train, values)
    )
    numeric_train, numeric = known_train & np.isfinite(left), known & np.isfinite(right)
    near = from_train_neighbours(
        left[numeric_train], train_labels.take(numeric_train), right[numeric], labels.take(numeric)
    )
    return max(best, near, key=lambda strength: strength.skill)


def find_highest(file: str, guesses: pd.DataFrame, labels: tuple[Labels, ...]) -> Iterator[Found]:
    """Yield whether the highest of several guesses is the label."""
    numbers = np.column_stack([to_numbers(guesses[name]) for name in guesses])
    for target in labels:
        if target.classes == numbers.shape[1] and len(np.unique(numbers)) > 1:
            known = target.take(target.known)
            highest = np.nan_to_num(numbers)[target.known].argmax(axis=1)
            strength = guessed(np.eye(target.classes)[highest], known)
            if strength.beats(_HIDDEN):
                text = "the highest of its columns is the label"
                yield (
                    strength.skill,
                    LeakFinding(LeakKind.TELLING_SAMPLE, file, text, strength.text),
                )


def find_in_ids(file: str, ids: Sequence[str], labels: tuple[Labels, ...]) -> Iterator[Found]:
    """Yield what the names of rows tell about their labels."""
    for view in views_of_ids(ids):
        for target in labels:
            strength = tell(view, target)
            if not strength.beats(_HIDDEN):
                strength = association_of(view, target)
            if strength.beats(_ASSOCIATED):
                reason = f"{view.what} tells the label"
                yield strength.skill, LeakFinding(LeakKind.TELLING_ID, file, reason, strength.text)
