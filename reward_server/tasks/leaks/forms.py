"""Is the test file written alike for every row, and does it say what the answers say?

How a row is written (the order of its fields, its quotation marks, its line's end) is lost
when a table is parsed, but not to a program that reads the bytes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.leaks.columns import association_of, tell
from reward_server.tasks.leaks.evidence import to_numbers
from reward_server.tasks.leaks.report import LeakFinding, LeakKind, Severity
from reward_server.tasks.leaks.tables import MOST_BYTES
from reward_server.tasks.leaks.views import View, codes_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from pathlib import Path

    import pandas as pd

    from reward_server.tasks.leaks.columns import Found
    from reward_server.tasks.leaks.evidence import LeakEvidence

_TELLING = 0.2


def find_in_forms(evidence: LeakEvidence) -> Iterator[Found]:
    """Yield whether the way a row of the test file is written tells its label."""
    file = evidence.target.test_file
    forms = _forms(evidence.public / file, len(evidence.ids))
    if len(set(forms)) < 2:
        return
    view = View("how a row is written", groups=codes_of(forms))
    for labels in evidence.labels:
        strength = max(tell(view, labels), association_of(view, labels), key=lambda x: x.skill)
        if strength.beats(_TELLING):
            text = "how a row is written tells its label"
            yield strength.skill, LeakFinding(LeakKind.HIDDEN_CHANNEL, file, text, strength.text)


def _forms(path: Path, rows: int) -> list[Hashable]:
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


def find_changed_columns(evidence: LeakEvidence) -> Iterator[Found]:
    """Yield the columns of the test file that are others than in the answers."""
    target, test = evidence.target, evidence.test
    truth = evidence.truth.iloc[test.rows]
    for name in test.table.columns.drop(target.id_column):
        if name in truth and name not in target.columns:
            share = _differing(test.table[name], truth[name])
            if share > 0:
                place = f"{target.test_file}:{name}"
                text = "it is not what the same column of the answers says"
                told = f"{share:.1%} of the rows"
                yield 1.0, LeakFinding(LeakKind.HIDDEN_CHANNEL, place, text, told, Severity.FAULT)


def _differing(here: pd.Series, there: pd.Series) -> float:
    same = here.to_numpy() == there.to_numpy()
    if same.all():
        return 0.0
    numbers, others = to_numbers(here), to_numbers(there)
    return float(np.mean(~(same | (numbers == others))))
