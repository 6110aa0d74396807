"""Programs with a known reward, each with a mark that only its own job prints."""

from __future__ import annotations

import random
from dataclasses import dataclass

TASK = "spooky-author-identification"
LEVELS = tuple(round(0.2 + 0.05 * n, 2) for n in range(12))
_FAILURE = -10.0


@dataclass(frozen=True, slots=True)
class Program:
    """A program, its kind in the oracle, and the mark it prints."""

    code: str
    kind: str
    mark: str


@dataclass(frozen=True, slots=True)
class Expected:
    """How a program of a kind ends."""

    status: str
    reward: float


def submitting(level: float, mark: str, seconds: float = 0.0) -> Program:
    """Predict the same probabilities for every text; no two levels earn the same reward."""
    code = f"""
import csv, time
print({mark!r})
time.sleep({seconds})
with open('/workdir/{TASK}/prepared/public/sample_submission.csv') as file:
    rows = list(csv.reader(file))
for row in rows[1:]:
    row[1:] = ['{level}', '{(1 - level) * 0.6:.6f}', '{(1 - level) * 0.4:.6f}']
with open('submission.csv', 'w') as file:
    csv.writer(file).writerows(rows)
"""
    return Program(code, f"level {level}", mark)


def crashing(mark: str, seconds: float = 0.0) -> Program:
    code = f"import time\nprint({mark!r})\ntime.sleep({seconds})\nraise SystemExit(1)\n"
    return Program(code, "crash", mark)


def napping(mark: str, seconds: str) -> Program:
    """Crash after a sleep that is visible from outside."""
    nap = f"import subprocess\nsubprocess.run(['sleep', '{seconds}'])\n"
    return Program(f"print({mark!r})\n{nap}raise SystemExit(1)\n", "crash", mark)


def unreadable(mark: str) -> Program:
    return Program(f"def {mark}(:\n", "unreadable", "")


def rng_for(seed: int, who: str = "") -> random.Random:
    """Return a random generator, the same for the same seed and user."""
    return random.Random(f"{seed} {who}")  # noqa: S311 - not for secrets


def draw(rng: random.Random, mark: str) -> Program:
    """Draw a program; most end at once, some sleep while faults happen."""
    dice = rng.random()
    if dice < 0.15:
        return unreadable(mark)
    seconds = round(rng.uniform(0.1, 0.8), 2) if rng.random() < 0.5 else 0.0
    if dice < 0.45:
        return crashing(mark, seconds)
    return submitting(rng.choice(LEVELS), mark, seconds)


FAILURES = {
    "crash": Expected("failed", _FAILURE),
    "unreadable": Expected("failed", _FAILURE),
}
