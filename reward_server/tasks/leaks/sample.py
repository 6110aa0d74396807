"""Does the sample submission score better than its own values would in any other order?

A constant scores the same however it is shuffled, and so does a random guess but for luck. A
sample that loses much of its score when shuffled knows something.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from reward_server.errors import InfrastructureError
from reward_server.grade.process import ProcessGrader
from reward_server.tasks.leaks.report import LeakCheck, LeakFinding, LeakKind, Severity
from reward_server.tasks.leaks.tables import MOST_BYTES, parse_written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from reward_server.model import Grade
    from reward_server.tasks.base import Card

_SHUFFLES = 12
_SPREADS = 8.0
_NAME = "sample submission"


def look_at_sample(card: Card, folder: Path, public: Path, answers: Path) -> LeakCheck:
    """Grade the sample submission, as it is and shuffled."""
    sample = public / card.sample_submission
    if sample.stat().st_size > MOST_BYTES:
        return LeakCheck(_NAME, "too large to be graded here")
    data = sample.read_bytes()
    try:
        grades = asyncio.run(_grade(folder, answers, [data, *_shuffled(card, data)]))
    except InfrastructureError:
        text = "the grader fails on the sample submission"
        fault = LeakFinding(LeakKind.DAMAGED, card.sample_submission, text, severity=Severity.FAULT)
        return LeakCheck(_NAME, "graded", (fault,))
    score = grades[0].score
    if score is None:
        return LeakCheck(_NAME, "not valid", tuple(_ungradable(card)))
    others = np.array([grade.score for grade in grades[1:] if grade.score is not None])
    scope = f"score {score:.6g}, shuffled {len(others)} times"
    return LeakCheck(_NAME, scope, tuple(_judge(card, score, others)))


def _ungradable(card: Card) -> Iterator[LeakFinding]:
    # A sample without a score of its own is allowed where the card gives a baseline instead.
    if getattr(card, "baseline", None) is None:
        text = "the sample submission is not valid"
        yield LeakFinding(LeakKind.DAMAGED, card.sample_submission, text, severity=Severity.FAULT)


def _judge(card: Card, score: float, others: np.ndarray) -> Iterator[LeakFinding]:
    if not len(others):
        return
    gain = (score - others.mean()) * (1 if card.higher_is_better else -1)
    spread = others.std()
    if gain > _SPREADS * spread + 1e-9 * max(1.0, abs(score)):
        text = "it scores better than its own values in any other order"
        told = f"{score:.4g} instead of {others.mean():.4g} (spread {spread:.2g})"
        yield LeakFinding(LeakKind.TELLING_SAMPLE, card.sample_submission, text, told)


def _shuffled(card: Card, data: bytes) -> Iterator[bytes]:
    """Yield the sample with its predictions given to other rows."""
    table = parse_written(data, ".csv")
    named = card.target.columns if card.target is not None else card.columns[1:]
    guessed = [name for name in named if name in table]
    if not guessed or (table[guessed] == table[guessed].iloc[0]).all(axis=None):
        return
    rng = np.random.default_rng(0)
    for _ in range(_SHUFFLES):
        yield _write(table, guessed, rng)


def _write(table: pd.DataFrame, guessed: list[str], rng: np.random.Generator) -> bytes:
    order = rng.permutation(len(table))
    moved = {name: table[name].to_numpy()[order] for name in guessed}
    return table.assign(**moved).to_csv(index=False).encode()


async def _grade(folder: Path, answers: Path, submissions: list[bytes]) -> list[Grade]:
    async with ProcessGrader() as grader:
        return [await grader.grade_bytes(data, folder, answers, MOST_BYTES) for data in submissions]
