"""The lint as a whole: every check in turn, over the prepared data of one task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from reward_server.errors import InfrastructureError
from reward_server.tasks.base import TargetKind
from reward_server.tasks.leaks.columns import (
    LabeledTable,
    find_highest,
    find_in_table,
    find_own_labels,
    find_text_labels,
    find_words,
    own_labels,
)
from reward_server.tasks.leaks.evidence import (
    MOST_BYTES,
    LeakEvidence,
    parse_written,
    read_evidence,
    read_written,
    take_part,
    to_numbers,
)
from reward_server.tasks.leaks.files import check_files
from reward_server.tasks.leaks.report import (
    LeakCheck,
    LeakFinding,
    LeakKind,
    Severity,
    fault,
    strongest_by_place,
    weigh,
)
from reward_server.tasks.leaks.rows import check_order, check_overlap
from reward_server.tasks.leaks.views import HIDDEN_SKILL, View, codes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from pathlib import Path

    import pandas as pd

    from reward_server.model import Grade
    from reward_server.tasks.base import Card
    from reward_server.tasks.leaks.report import WeighedFinding
    from reward_server.tasks.leaks.strength import Codes

    GradeAll = Callable[[list[bytes]], list[Grade]]

_SHUFFLES = 12
_SPREADS = 8.0


def check_leaks(card: Card, public: Path, answers: Path) -> tuple[LeakCheck, ...]:
    """Check columns, order, overlap and files; without a target the files alone."""
    if card.target is None:
        note = LeakCheck("tables", "not checked: the card names no target")
        return note, check_files(card, public, answers, None)
    try:
        evidence = read_evidence(card, card.target, public, answers)
    except (OSError, ValueError, KeyError) as error:
        text = f"the tables and the answers do not fit each other: {error}"
        unreadable = LeakCheck("tables", "not readable", (fault(card.target.test_file, text),))
        return unreadable, check_files(card, public, answers, None)
    return (
        _check_columns(evidence),
        check_order(evidence),
        check_overlap(evidence),
        check_files(card, public, answers, evidence),
    )


def _check_columns(evidence: LeakEvidence) -> LeakCheck:
    test, (sample, rows) = evidence.test, _sample(evidence)
    found = [
        *_find_changed_columns(evidence),
        *_find_in_written_rows(evidence),
        *_find_label_columns(evidence),
        *_find_in_test(evidence),
        *_find_in_sample(evidence, sample, rows),
    ]
    part = f" (of {test.total})" if test.is_part else ""
    scope = f"{len(test.table.columns)} of test and {len(sample.columns)} of sample, "
    scope += f"{len(test.rows)} rows{part}"
    return LeakCheck("columns", scope, strongest_by_place(found))


def _find_label_columns(evidence: LeakEvidence) -> Iterator[WeighedFinding]:
    target = evidence.target
    names = {*target.hidden_columns, *target.columns}
    for name in sorted(names & set(evidence.test.table.columns)):
        text = "the test file has a column of the labels"
        yield 2.0, LeakFinding(LeakKind.LABEL_COLUMN, f"{target.test_file}:{name}", text)


def _find_changed_columns(evidence: LeakEvidence) -> Iterator[WeighedFinding]:
    """Yield the columns of the test file that differ from those of the answers."""
    target, test = evidence.target, evidence.test
    truth = evidence.truth.iloc[test.rows]
    for name in test.table.columns.drop(target.id_column):
        if name not in truth or name in target.columns:
            continue
        here, there = test.table[name], truth[name]
        same = here.to_numpy() == there.to_numpy()
        if not same.all():
            share = float(np.mean(~(same | (to_numbers(here) == to_numbers(there)))))
            if share > 0:
                text = "it differs from the same column of the answers"
                place, strength = f"{target.test_file}:{name}", f"{share:.1%} of the rows"
                kind, severity = LeakKind.HIDDEN_CHANNEL, Severity.FAULT
                yield 1.0, LeakFinding(kind, place, text, strength, severity)


def _find_in_written_rows(evidence: LeakEvidence) -> Iterator[WeighedFinding]:
    """Yield whether the way a row of the test file is written reveals its label.

    The order of a row's fields, its quotation marks and its line's end are lost when a table is
    parsed, but not to a program that reads the bytes.
    """
    file = evidence.target.test_file
    forms = _forms_of_rows(evidence.public / file, len(evidence.ids))
    if len(set(forms)) < 2:
        return
    view = View("how a row is written", groups=codes_of(forms))
    for labels in evidence.labels:
        strength = view.relate(labels)
        if strength.beats(HIDDEN_SKILL):
            yield weigh(LeakKind.HIDDEN_CHANNEL, file, f"{view.what} predicts its label", strength)


def _forms_of_rows(path: Path, rows: int) -> list[Hashable]:
    if path.stat().st_size > MOST_BYTES:
        return []
    data = path.read_bytes()
    if path.suffix == ".json":
        records = json.loads(data)
        is_records = isinstance(records, list) and all(isinstance(x, dict) for x in records)
        return [tuple(record) for record in records] if is_records else []
    lines = data.split(b"\n")[1:]
    if lines and not lines[-1]:
        lines.pop()
    if len(lines) != rows:  # a text that goes over several lines
        return []
    return [(line.startswith(b'"'), line.count(b'"'), line[-1:].isspace()) for line in lines]


def _find_in_test(evidence: LeakEvidence) -> Iterator[WeighedFinding]:
    target, test = evidence.target, evidence.test
    labels, is_text = evidence.labels_of(test.rows), target.kind is TargetKind.TEXT
    part = take_part(evidence.train.table)
    train_labels = tuple(labels.take(part.rows) for labels in evidence.train_labels)
    ids_are_texts = test.table[target.id_column].str.len().median() > 40
    skipped = [] if ids_are_texts else [target.id_column]
    if is_text:
        yield from find_text_labels(target.test_file, test.table, test.rows, evidence)
    yield from find_in_table(
        target.test_file,
        LabeledTable(test.table, labels),
        LabeledTable(part.table, train_labels),
        skipped,
    )
    for name in map(str, test.table.columns.drop(skipped)):
        place, texts = f"{target.test_file}:{name}", test.table[name]
        yield from find_words(place, texts, labels, part.table.get(name))
        for own in () if is_text else own_labels(evidence, test.rows):
            yield from find_own_labels(place, texts, own)


def _sample(evidence: LeakEvidence) -> tuple[pd.DataFrame, Codes]:
    sample = read_written(evidence.public / evidence.card.sample_submission).table
    rows = evidence.rows_of(sample[evidence.target.id_column].tolist())
    part = take_part(sample[rows >= 0].reset_index(drop=True))
    return part.table, rows[rows >= 0][part.rows]


def _find_in_sample(
    evidence: LeakEvidence, table: pd.DataFrame, rows: Codes
) -> Iterator[WeighedFinding]:
    target, file, labels = (
        evidence.target,
        evidence.card.sample_submission,
        evidence.labels_of(rows),
    )
    guesses = [name for name in target.columns if name in table]
    if target.kind is TargetKind.TEXT:
        yield from find_text_labels(file, table, rows, evidence)
    elif len(guesses) > 1 and target.kind is not TargetKind.NUMBERS:
        yield from find_highest(file, table[guesses], labels)
    shared = [name for name in map(str, table) if name in evidence.test.table]
    train = LabeledTable(evidence.train.table.iloc[:, :0], ())
    yield from find_in_table(file, LabeledTable(table, labels), train, shared)


def check_sample(card: Card, public: Path, grade_all: GradeAll) -> LeakCheck:
    """Check whether the sample submission scores better than its values in any other order.

    A constant scores the same however it is shuffled, and so does a random guess but for luck.
    A sample that loses much of its score when shuffled reveals labels.
    """
    name, file = "sample submission", card.sample_submission
    sample = public / file
    if sample.stat().st_size > MOST_BYTES:
        return LeakCheck(name, "too large to be graded here")
    data = sample.read_bytes()
    try:
        grades = grade_all([data, *_shuffled(card, data)])
    except InfrastructureError:
        failure = fault(file, "the grader fails on the sample submission")
        return LeakCheck(name, "graded", (failure,))
    score = grades[0].score
    if score is None:
        invalid = fault(file, "the sample submission is not valid")
        # A sample without a score of its own is allowed where the card gives a baseline instead.
        return LeakCheck(name, "not valid", (invalid,) if card.baseline is None else ())
    others = np.array([grade.score for grade in grades[1:] if grade.score is not None])
    scope = f"score {score:.6g}, shuffled {len(others)} times"
    return LeakCheck(name, scope, tuple(_compare_scores(card, score, others)))


def _compare_scores(card: Card, score: float, others: np.ndarray) -> Iterator[LeakFinding]:
    if not len(others):
        return
    gain, spread = (score - others.mean()) * (1 if card.higher_is_better else -1), others.std()
    if gain > _SPREADS * spread + 1e-9 * max(1.0, abs(score)):
        text = "it scores better than its own values in any other order"
        strength = f"{score:.4g} instead of {others.mean():.4g} (spread {spread:.2g})"
        yield LeakFinding(LeakKind.PREDICTIVE_SAMPLE, card.sample_submission, text, strength)


def _shuffled(card: Card, data: bytes) -> Iterator[bytes]:
    """Yield the sample with its predictions given to other rows."""
    table = parse_written(data, ".csv")
    named = card.target.columns if card.target is not None else card.columns[1:]
    guessed = [name for name in named if name in table]
    if not guessed or (table[guessed] == table[guessed].iloc[0]).all(axis=None):
        return
    rng = np.random.default_rng(0)
    for _ in range(_SHUFFLES):
        order = rng.permutation(len(table))
        moved = {name: table[name].to_numpy()[order] for name in guessed}
        yield table.assign(**moved).to_csv(index=False).encode()
