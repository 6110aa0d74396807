"""Where the label is a text: does a column other than its source hold it?

A chosen part of a text naturally stands in that text, and often is all of it. A leak is
another column that holds it, or a source that was cut down to it in the test file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.leaks.evidence import source_of
from reward_server.tasks.leaks.report import LeakFinding, LeakKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from reward_server.tasks.leaks.columns import Found
    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.strength import Codes

_LEAST_SHARE = 0.05
_NEARER = 0.1


def find_in_selections(
    file: str, table: pd.DataFrame, rows: Codes, evidence: LeakEvidence
) -> Iterator[Found]:
    """Yield the columns of a table that hold the text that is asked for."""
    label = evidence.target.columns[0]
    truth = evidence.truth.iloc[rows]
    own, source = _plain(truth[label]), source_of(label, truth)
    others = list(np.random.default_rng(0).permutation(np.array(own, dtype=object)))
    for name in table.columns.drop(evidence.target.id_column):
        texts = _plain(table[name])
        if name == source:
            yield from _cut_down(f"{file}:{name}", str(name), evidence, texts, own)
            continue
        told, by_chance = _held(texts, own), _held(texts, others)
        if told > 2 * by_chance + _LEAST_SHARE:
            strength = f"{told:.0%} of the rows, {by_chance:.0%} by chance"
            text = "it holds the text that is asked for"
            yield 1.0, LeakFinding(LeakKind.TELLING_COLUMN, f"{file}:{name}", text, strength)


def _cut_down(
    place: str, name: str, evidence: LeakEvidence, texts: Sequence[str], own: Sequence[str]
) -> Iterator[Found]:
    train, label = evidence.train.table, evidence.target.columns[0]
    if name not in train or label not in train:
        return
    here, there = _overlap(texts, own), _overlap(_plain(train[name]), _plain(train[label]))
    if here > there + _NEARER:
        strength = f"{here:.2f} of its words, {there:.2f} in the train file"
        text = "it is closer to the text that is asked for than in the train file"
        yield 1.0, LeakFinding(LeakKind.TELLING_COLUMN, place, text, strength)


def _plain(values: pd.Series) -> list[str]:
    return [" ".join(value.lower().split()) for value in values]


def _held(texts: Sequence[str], own: Sequence[str]) -> float:
    pairs = zip(texts, own, strict=True)
    return float(np.mean([len(part) > 2 and part in text for text, part in pairs]))


def _overlap(texts: Sequence[str], own: Sequence[str]) -> float:
    pairs = ((set(text.split()), set(part.split())) for text, part in zip(texts, own, strict=True))
    return float(np.mean([len(a & b) / max(len(a | b), 1) for a, b in pairs]))
