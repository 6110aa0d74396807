"""Does one column of a public table reveal the label, alone?

A column is judged by its views, by the words and letters of its texts, and by whether it holds
the label of its own row. A word that is commoner with one label is what a model learns from; a
leak is a word that settles the label of a good part of the rows, or one that only the test file
has.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import special

from reward_server.tasks.base import TargetKind
from reward_server.tasks.leaks.evidence import to_numbers
from reward_server.tasks.leaks.report import LeakFinding, LeakKind, Severity, weigh
from reward_server.tasks.leaks.strength import (
    ALPHA,
    FEWEST_ROWS,
    NOTHING,
    Strength,
    from_groups,
    from_neighbours,
    label_sums,
    pure_labels,
    score,
)
from reward_server.tasks.leaks.views import HIDDEN_SKILL, View, codes_of, views_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.report import WeighedFinding
    from reward_server.tasks.leaks.strength import Codes, Labels

    Words = list[set[str]]

# A single natural column that reaches this much has left nothing to a model.
_LEAK_SKILL = {True: 0.6, False: 0.9}
_NOTABLE_SKILL = {True: 0.4, False: 0.8}
_ASSOCIATED = 0.1
_MORE_THAN_TRAIN = 0.2
_DOUBTS = 5
_SHARE_OF_LABEL = 0.02
_WORD_SKILL = 0.5
_WORD_SHARE_OF_LABEL = 0.25
_MOST_WORDS = 4_000
_MOST_LETTERS = 5_000
_SHUFFLES = 8
_HELD_SHARE = 0.05
_CLOSER_THAN_TRAIN = 0.1
_LONG_TEXT = 12
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class LabeledTable:
    """A table and the labels of its rows."""

    table: pd.DataFrame
    labels: tuple[Labels, ...]


def find_in_table(
    file: str,
    table: LabeledTable,
    train: LabeledTable | None = None,
    skipped: Iterable[str] = (),
) -> Iterator[WeighedFinding]:
    """Yield what the columns of a table reveal about the labels of its rows.

    `train` is what a program may learn from; a column it lacks should predict nothing.
    """
    for name in map(str, table.table.columns.drop(list(skipped), errors="ignore")):
        column, place = table.table[name], f"{file}:{name}"
        views = list(views_of(column))
        is_new = train is not None and name not in train.table
        for number, labels in enumerate(table.labels):
            known = _train_column(train, name, number)
            natural = 0.0
            for view in views:
                strength = view.predict(labels)
                if view.is_hidden:
                    yield from _check_hidden(place, view, labels, strength, natural)
                    continue
                natural = max(natural, strength.skill)
                in_train = NOTHING
                if known is not None and strength.beats(HIDDEN_SKILL):
                    in_train = _in_train(view, *known)
                yield from _check_natural(place, view, labels, (strength, in_train), is_new=is_new)
                yield from _find_pure_values(place, view, column, labels)
            if known is not None:
                strength = _from_train(column, labels, *known)
                view = View("the train rows with such values")
                yield from _check_natural(place, view, labels, (strength, strength), is_new=False)


def _train_column(
    train: LabeledTable | None, name: str, number: int
) -> tuple[pd.Series, Labels] | None:
    if train is None or name not in train.table or number >= len(train.labels):
        return None
    return train.table[name], train.labels[number]


def _reason(view: View, labels: Labels) -> str:
    plural = view.what.endswith(("values", "words", "decimals", "digits", "capitals"))
    name = "" if labels.name == "label" else f" {labels.name}"
    return f"{view.what} predict{'' if plural else 's'} the label{name}"


def _check_hidden(
    place: str, view: View, labels: Labels, strength: Strength, natural: float
) -> Iterator[WeighedFinding]:
    differs = view.associate(labels) if natural < _ASSOCIATED else NOTHING
    is_more = strength.beats(max(HIDDEN_SKILL, natural + _ASSOCIATED))
    if is_more or differs.beats(HIDDEN_SKILL):
        yield weigh(LeakKind.HIDDEN_CHANNEL, place, _reason(view, labels), strength)


def _check_natural(
    place: str, view: View, labels: Labels, strengths: tuple[Strength, Strength], *, is_new: bool
) -> Iterator[WeighedFinding]:
    (strength, in_train), is_classes = strengths, labels.classes > 0
    reason, severity = _reason(view, labels), Severity.LEAK
    if not strength.beats(_LEAK_SKILL[is_classes]):
        is_hidden_skill = strength.beats(HIDDEN_SKILL)
        if is_new and (is_hidden_skill or view.associate(labels).beats(_ASSOCIATED)):
            reason += ", and the train file has no such column"
        elif is_hidden_skill and _is_more(strength, in_train):
            reason += " far better than in the train file"
        elif strength.beats(_NOTABLE_SKILL[is_classes]):
            severity = Severity.NOTE
        else:
            return
    yield weigh(LeakKind.PREDICTIVE_COLUMN, place, reason, strength, severity)


def _is_more(strength: Strength, in_train: Strength) -> bool:
    """Tell whether something predicts better than in the train data, and not by chance."""
    if not in_train.rows:
        return False
    doubt = float(np.sqrt(1 / strength.rows + 1 / in_train.rows))
    return strength.skill - in_train.skill > max(_MORE_THAN_TRAIN, _DOUBTS * doubt)


def _in_train(view: View, column: pd.Series, labels: Labels) -> Strength:
    """Return how well the same view predicts the labels of the train rows."""
    same = (other for other in views_of(column) if view.is_like(other))
    without = Strength(0.0, 1.0, len(labels.values))
    return next((other.predict(labels) for other in same), without)


def _find_pure_values(
    place: str, view: View, column: pd.Series, labels: Labels
) -> Iterator[WeighedFinding]:
    """Yield whether some values, or rare values as such, occur with one label alone."""
    known = labels.known
    if view.groups is None or not labels.classes or not known.any():
        return
    groups, known_labels = view.groups[known], labels.take(known)
    is_rare = (groups != np.bincount(groups).argmax()).astype(np.intp)
    for members in (groups, is_rare):
        counts = label_sums(members, known_labels, int(members.max()) + 1)
        hits = np.where(pure_labels(counts, counts.sum(axis=0)), counts, 0)
        group, label = np.unravel_index(int(hits.argmax()), hits.shape)
        share = hits[group, label] / max(counts[:, label].sum(), 1)
        if share >= _SHARE_OF_LABEL:
            distinct = len(set(column.to_numpy()[known][members == group]))
            rows = f"{hits[group, label]:.0f} rows with {distinct} different values"
            strength = f"{share:.0%} of the rows of one label, {rows}"
            text = "some of its values occur with one label alone"
            yield 0.5, LeakFinding(LeakKind.PURE_VALUES, place, text, strength)
            return


def _from_train(
    values: pd.Series, labels: Labels, train: pd.Series, train_labels: Labels
) -> Strength:
    """Predict labels from the train rows with equal values, or with the nearest numbers."""
    known, learned = labels.known, train_labels.known
    codes = codes_of([*train[learned].tolist(), *values[known].tolist()])
    train_codes, own_codes = codes[: learned.sum()], codes[learned.sum() :]
    by_value = from_groups(own_codes, labels.take(known), (train_codes, train_labels.take(learned)))
    left, right = (pd.to_numeric(x, errors="coerce").to_numpy(np.float64) for x in (train, values))
    learned, known = learned & np.isfinite(left), known & np.isfinite(right)
    by_number = from_neighbours(
        right[known], labels.take(known), (left[learned], train_labels.take(learned))
    )
    return max(by_value, by_number, key=lambda strength: strength.skill)


def find_highest(
    file: str, guesses: pd.DataFrame, labels: tuple[Labels, ...]
) -> Iterator[WeighedFinding]:
    """Yield whether the highest of several guesses is the label."""
    numbers = np.nan_to_num(np.column_stack([to_numbers(guesses[name]) for name in guesses]))
    for target in labels:
        if target.classes == numbers.shape[1] and len(np.unique(numbers)) > 1:
            highest = np.eye(target.classes)[numbers[target.known].argmax(axis=1)]
            known = target.take(target.known)
            strength = score(highest, np.ones(len(highest), np.intp), known)
            if strength.beats(HIDDEN_SKILL):
                text = "the highest of its columns is the label"
                yield weigh(LeakKind.PREDICTIVE_SAMPLE, file, text, strength)


def find_words(
    place: str, texts: pd.Series, labels: tuple[Labels, ...], train: pd.Series | None
) -> Iterator[WeighedFinding]:
    """Yield what single words and letters of a text column reveal about the labels."""
    if texts.str.len().median() < _LONG_TEXT:
        return
    words = _words_and_letters(texts)
    known = None if train is None else _words_and_letters(train)
    for target in labels:
        if target.classes and target.known.sum() >= FEWEST_ROWS:
            yield from _check_words(place, words, target, known)


def _words_and_letters(texts: pd.Series) -> Words:
    parts = (text[-_MOST_LETTERS:] for text in texts.tolist())
    return [{*part.split(), *part} for part in parts]


def _check_words(
    place: str, words: Words, labels: Labels, train: Words | None
) -> Iterator[WeighedFinding]:
    rows = np.flatnonzero(labels.known)
    frequent = Counter(word for row in rows for word in words[row]).most_common(_MOST_WORDS)
    common = {word: n for n, (word, count) in enumerate(frequent) if 5 <= count < len(rows)}
    common = {word: number for number, word in enumerate(common)}
    counts = np.zeros((len(common), labels.classes))
    for row, code in zip(rows, labels.codes[rows], strict=True):
        counts[[common[word] for word in words[row] if word in common], code] += 1
    totals = np.bincount(labels.codes[rows], minlength=labels.classes).astype(np.float64)
    base = totals.max() / len(rows)
    hits = counts.max(axis=1, initial=0) + (totals - counts).max(axis=1, initial=0)
    skill = (hits.max(initial=0) / len(rows) - base) / max(1 - base, 1e-9)
    if skill >= _WORD_SKILL:
        text = "one word or letter of it reveals the label"
        strength = Strength(float(skill), 0.0, len(rows))
        yield weigh(LeakKind.PREDICTIVE_COLUMN, place, text, strength)
    names = list(common)
    for index, code in zip(*np.nonzero(pure_labels(counts, totals)), strict=True):
        share = counts[index, code] / totals[code]
        rate = counts[index].sum() / len(rows)
        is_new = train is not None and _is_rare(names[index], rate / 4, train)
        if share >= _WORD_SHARE_OF_LABEL or is_new:
            text = "a word or letter of it occurs with one label alone"
            text += ", and hardly ever in the train file" if is_new else ""
            rows_of_label = f"{share:.0%} of the rows of one label"
            yield 0.5, LeakFinding(LeakKind.PURE_VALUES, place, text, rows_of_label)


def _is_rare(word: str, rate: float, train: Words) -> bool:
    return sum(word in words for words in train) < rate * len(train)


def own_labels(evidence: LeakEvidence, rows: Codes) -> Iterator[list[str]]:
    """Yield the labels of rows as words or numbers distinctive enough to be recognised."""
    target, truth = evidence.target, evidence.truth.iloc[rows]
    if len(target.columns) > 1 and target.kind is not TargetKind.NUMBERS:
        for labels in evidence.labels[:1]:
            yield [target.columns[code].lower() for code in labels.take(rows).codes]
        return
    for name in target.columns:
        own = [value.strip().lower() for value in truth[name].tolist()]
        if len(set(own)) > 20 or not all(value.replace(".", "").isdigit() for value in set(own)):
            yield own


def find_own_labels(place: str, texts: pd.Series, names: Sequence[str]) -> Iterator[WeighedFinding]:
    """Yield whether texts hold their own row's label far more often than another row's."""
    words = [_pieces(text[:_MOST_LETTERS]) for text in texts.tolist()]
    own = sum(name in pieces for name, pieces in zip(names, words, strict=True) if name)
    expected, rng = 0.0, np.random.default_rng(0)
    for _ in range(_SHUFFLES):
        others = rng.permutation(np.array(names, dtype=object))
        expected += sum(x in pieces for x, pieces in zip(others, words, strict=True) if x)
    expected = (expected + 1) / _SHUFFLES
    is_frequent = own > 0.02 * len(names) and own > 2 * expected
    if is_frequent and special.pdtrc(own - 1, expected) < ALPHA:
        share = own / len(names)
        strength = f"{share:.0%} of the rows, {expected / len(names):.0%} by chance"
        text = "it holds the label of its own row"
        yield share, LeakFinding(LeakKind.PREDICTIVE_COLUMN, place, text, strength)


def _pieces(text: str) -> set[str]:
    lower = text.lower()
    plain = re.split(r"[^\w.+-]+", lower)
    words = {*lower.split(), *plain, *re.split(r"\W+", lower), *_NUMBERS.findall(lower)}
    return {lower.strip(), *words} - {""}


def find_text_labels(
    file: str, table: pd.DataFrame, rows: Codes, evidence: LeakEvidence
) -> Iterator[WeighedFinding]:
    """Yield the columns that are closer to the text that is asked for than chance or train.

    A chosen part of a text naturally is in that text, and often is all of it.
    """
    label, train = evidence.target.columns[0], evidence.train.table
    own = _word_lists(evidence.truth[label].iloc[rows])
    others = list(np.random.default_rng(0).permutation(np.array(own, dtype=object)))
    for name in map(str, table.columns.drop(evidence.target.id_column)):
        texts = _word_lists(table[name])
        for measure in (_held, _shared):
            here, chance = measure(texts, own), measure(texts, others)
            usual = 2 * chance + _HELD_SHARE
            if name in train and label in train and name != label:
                there = measure(_word_lists(train[name]), _word_lists(train[label]))
                usual = max(usual, there + _CLOSER_THAN_TRAIN)
            if here > usual:
                strength = f"{here:.0%} alike, {chance:.0%} by chance"
                text = "it is unusually close to the text that is asked for"
                finding = LeakFinding(LeakKind.PREDICTIVE_COLUMN, f"{file}:{name}", text, strength)
                yield 1.0, finding


def _word_lists(values: pd.Series) -> list[str]:
    return [" ".join(value.lower().split()) for value in values]


def _held(texts: Sequence[str], own: Sequence[str]) -> float:
    pairs = zip(texts, own, strict=True)
    return float(np.mean([len(part) > 2 and part in text for text, part in pairs]))


def _shared(texts: Sequence[str], own: Sequence[str]) -> float:
    pairs = ((set(text.split()), set(part.split())) for text, part in zip(texts, own, strict=True))
    return float(np.mean([len(a & b) / max(len(a | b), 1) for a, b in pairs]))
