"""Made-up control data with Kaggle's columns and a planted signal of interactions.

A linear model sees a few slopes. The rest takes trees or crossed features: bands that are
alike on both sides, slopes that turn with the two discrete switches, and what each letter of
`f_27` is worth at its place. Which columns do what is drawn from the seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = range(7, 19)
LETTERS, SWITCHES = 27, (29, 30)
ALPHABETS = (2, 15, 2, 15, 15, 2, 15, 20, 15, 15)
SPREADS = dict.fromkeys(range(7), 1.0) | dict.fromkeys(range(19, 27), 2.4) | {28: 240.0}
MEAN_COUNT = 2.0
_PIECE_ROWS = 100_000
_STATE_SHARE = 0.486
_TURNS = np.array([[1.0, -1.0, 0.3], [-1.0, 1.0, -0.3]])

Numbers: TypeAlias = NDArray[np.float64]


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv with `rows` rows in random order, ids counted from 0."""
    rng = np.random.default_rng(seed)
    signal = _Signal(rng)
    cut = float(np.quantile(_states(rng, signal, _features(rng, 20_000)), 1 - _STATE_SHARE))
    for start in range(0, rows, _PIECE_ROWS):
        features = _features(rng, min(_PIECE_ROWS, rows - start))
        target = (_states(rng, signal, features) > cut).astype(int)
        table = features.assign(target=target)
        table.insert(0, "id", range(start, start + len(table)))
        table.to_csv(raw / "train.csv", index=False, header=start == 0, mode="a")


class _Signal:
    """What decides the state: all of it drawn from the seed."""

    def __init__(self, rng: np.random.Generator) -> None:
        order = [f"f_{column:02d}" for column in rng.permutation(list(SPREADS))]
        counts = [f"f_{column:02d}" for column in rng.permutation(COUNTS)]
        self.slopes = dict(zip([*order[:4], *counts[:3]], rng.choice([-0.3, 0.3], 7), strict=True))
        self.bands = dict(zip(order[4:8], rng.choice([-0.9, 0.9], 4), strict=True))
        self.turns = order[8:11]
        self.sums = (order[11:13], order[13:15])
        self.letters = [rng.normal(scale=0.5, size=size) for size in ALPHABETS]


def _features(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    columns: dict[str, object] = {}
    for column in range(31):
        name = f"f_{column:02d}"
        if column in COUNTS:
            columns[name] = rng.poisson(MEAN_COUNT, rows).clip(0, 16)
        elif column == LETTERS:
            columns[name] = _words(rng, rows)
        elif column in SWITCHES:
            columns[name] = rng.integers(0, column - 27, rows)
        else:
            columns[name] = rng.normal(scale=SPREADS[column], size=rows).round(6)
    return pd.DataFrame(columns)


def _words(rng: np.random.Generator, rows: int) -> NDArray[np.str_]:
    places = [
        (size * rng.random(rows) ** (1.0 if size == 2 else 2.0)).astype(np.uint8)
        for size in ALPHABETS
    ]
    letters = np.column_stack(places) + np.uint8(ord("A"))
    return letters.view(f"S{len(ALPHABETS)}").ravel().astype(str)


def _states(rng: np.random.Generator, signal: _Signal, features: pd.DataFrame) -> Numbers:
    """Return the log odds of state 1 with the noise that makes a state of them."""
    whole = _standardised(features)
    odds = sum(weight * whole[name] for name, weight in signal.slopes.items())
    odds += sum(weight * (whole[name] ** 2).clip(0, 4) for name, weight in signal.bands.items())
    switch = _TURNS[features["f_29"], features["f_30"]]
    odds += 0.7 * switch * sum(whole[name] for name in signal.turns)
    for pair in signal.sums:
        together = sum(whole[name] for name in pair)
        odds += np.where(together > 1.5, 1.2, 0.0) - np.where(together < -1.5, 1.2, 0.0)
    letters = features["f_27"].to_numpy(f"S{len(ALPHABETS)}").view(np.uint8) - ord("A")
    for place, worth in zip(letters.reshape(len(features), -1).T, signal.letters, strict=True):
        odds += worth[place]
    return np.asarray(1.4 * odds + rng.logistic(size=len(features)))


def _standardised(features: pd.DataFrame) -> dict[str, Numbers]:
    continuous = {f"f_{column:02d}": (0.0, spread) for column, spread in SPREADS.items()}
    counts = {f"f_{column:02d}": (MEAN_COUNT, MEAN_COUNT**0.5) for column in COUNTS}
    return {
        name: np.asarray((features[name] - mean) / spread, dtype=np.float64)
        for name, (mean, spread) in (continuous | counts).items()
    }
