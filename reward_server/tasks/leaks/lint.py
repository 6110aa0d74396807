"""The lint as a whole: every look in turn, over the prepared data of one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.tasks.base import TargetKind
from reward_server.tasks.leaks.columns import Side, find_highest, find_in_table
from reward_server.tasks.leaks.evidence import LeakEvidence, part_of_test, read_evidence
from reward_server.tasks.leaks.files import look_at_files
from reward_server.tasks.leaks.forms import find_changed_columns, find_in_forms
from reward_server.tasks.leaks.order import look_at_order
from reward_server.tasks.leaks.overlap import look_at_overlap
from reward_server.tasks.leaks.report import (
    LeakCheck,
    LeakFinding,
    LeakKind,
    Severity,
    strongest_by_place,
)
from reward_server.tasks.leaks.selections import find_in_selections
from reward_server.tasks.leaks.tables import read_written
from reward_server.tasks.leaks.words import find_in_texts, find_own_labels, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from reward_server.tasks.base import Card
    from reward_server.tasks.leaks.columns import Found
    from reward_server.tasks.leaks.strength import Codes

_LONG_TEXT = 12


def find_leaks(card: Card, public: Path, answers: Path) -> tuple[LeakFinding, ...]:
    """Return every leak and fault in the public files; not what needs a grader or a sandbox."""
    looks = look_for_leaks(card, public, answers)
    found = (finding for look in looks for finding in look.findings)
    return tuple(finding for finding in found if finding.severity is not Severity.NOTE)


def look_for_leaks(card: Card, public: Path, answers: Path) -> tuple[LeakCheck, ...]:
    """Look at columns, order, overlap and files; without a target at the files alone."""
    if card.target is None:
        note = LeakCheck("tables", "not looked at: the card names no target")
        return note, look_at_files(card, public, answers, None)
    try:
        evidence = read_evidence(card, card.target, public, answers)
    except (OSError, ValueError, KeyError) as error:
        text = f"the tables and the answers do not fit each other: {error}"
        fault = LeakFinding(LeakKind.DAMAGED, card.target.test_file, text, severity=Severity.FAULT)
        return LeakCheck("tables", "not readable", (fault,)), look_at_files(
            card, public, answers, None
        )
    return (
        _look_at_columns(evidence),
        look_at_order(evidence),
        look_at_overlap(evidence),
        look_at_files(card, public, answers, evidence),
    )


def _look_at_columns(evidence: LeakEvidence) -> LeakCheck:
    test, (sample, rows) = evidence.test, _sample(evidence)
    found = [
        *find_changed_columns(evidence),
        *find_in_forms(evidence),
        *_hidden_columns(evidence),
        *_in_test(evidence),
        *_in_sample(evidence, sample, rows),
    ]
    part = f" (of {test.total})" if test.is_part else ""
    scope = f"{len(test.table.columns)} of test and {len(sample.columns)} of sample, "
    scope += f"{len(test.rows)} rows{part}"
    return LeakCheck("columns", scope, strongest_by_place(found))


def _hidden_columns(evidence: LeakEvidence) -> Iterator[Found]:
    target = evidence.target
    names = {*target.hidden_columns, *target.columns}
    for name in sorted(names & set(evidence.test.table.columns)):
        text = "the label itself stands in the test file"
        yield 2.0, LeakFinding(LeakKind.LABEL_COLUMN, f"{target.test_file}:{name}", text)


def _in_test(evidence: LeakEvidence) -> Iterator[Found]:
    target, table = evidence.target, evidence.test.table
    labels = evidence.labels_of(evidence.test.rows)
    side, train = Side(table, labels), _train(evidence)
    ids_are_texts = table[target.id_column].str.len().median() > 40
    skipped = [] if ids_are_texts else [target.id_column]
    if target.kind is TargetKind.TEXT:
        yield from find_in_selections(target.test_file, table, evidence.test.rows, evidence)
    yield from find_in_table(target.test_file, side, train, skipped)
    for name in table.columns.drop(skipped):
        place = f"{target.test_file}:{name}"
        if table[name].str.len().median() >= _LONG_TEXT:
            known = train.table.get(str(name))
            yield from find_in_texts(place, table[name], labels, known)
        if target.kind is not TargetKind.TEXT:
            for own in names_of(evidence, evidence.test.rows):
                yield from find_own_labels(place, table[name], own)


def _train(evidence: LeakEvidence) -> Side:
    part = part_of_test(evidence.train.table)
    return Side(part.table, tuple(labels.take(part.rows) for labels in evidence.train_labels))


def _sample(evidence: LeakEvidence) -> tuple[pd.DataFrame, Codes]:
    path = evidence.public / evidence.card.sample_submission
    sample = read_written(path, 1 << 62).table
    rows = evidence.rows_of(sample[evidence.target.id_column].tolist())
    part = part_of_test(sample[rows >= 0].reset_index(drop=True))
    return part.table, rows[rows >= 0][part.rows]


def _in_sample(evidence: LeakEvidence, table: pd.DataFrame, rows: Codes) -> Iterator[Found]:
    file, labels = evidence.card.sample_submission, evidence.labels_of(rows)
    if evidence.target.kind is TargetKind.TEXT:
        yield from find_in_selections(file, table, rows, evidence)
    guesses = [name for name in evidence.target.columns if name in table]
    if len(guesses) > 1 and evidence.target.kind is not TargetKind.NUMBERS:
        yield from find_highest(file, table[guesses], labels)
    shared = [name for name in map(str, table) if name in evidence.test.table]
    train = Side(evidence.train.table.iloc[:, :0], ())
    yield from find_in_table(file, Side(table, labels), train, shared)
