"""Made-up machines: old, hot and shaking ones fail, and some makers' more than others'.

Everything that decides a label is drawn from the seed, so that nobody who reads this file can
compute the labels of data whose seed is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from pathlib import Path

MAKERS = ("Alder", "Birch", "Cedar", "Dogwood")


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write machines.csv with a planted signal and some noise."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 20, rows).round(1)
    temperature = rng.normal(60, 8, rows).round(1)
    vibration = rng.gamma(2, 1, rows).round(2)
    maker = rng.integers(len(MAKERS), size=rows)
    strength = rng.uniform(0.5, 1.5, 3)
    quality = rng.normal(0, 1, len(MAKERS))
    risk = (
        strength[0] * (age - 10) / 6
        + strength[1] * (temperature - 60) / 8
        + strength[2] * (vibration - 2)
        + quality[maker]
    )
    failed = rng.random(rows) < 1 / (1 + np.exp(-risk))
    machines = pd.DataFrame(
        {
            "machine_id": rng.permutation(rows),
            "age_years": age,
            "temperature": temperature,
            "vibration": vibration,
            "maker": np.array(MAKERS)[maker],
            "failed": failed.astype(int),
        }
    )
    machines.to_csv(raw / "machines.csv", index=False)
