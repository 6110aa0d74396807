"""Made-up patches of forest with Kaggle's columns and a planted signal.

Each class likes some soils and areas, which a linear model sees, grows in bands of elevation
that come again higher up, and turns towards its own point of the compass on steep ground,
which it does not. Classes are as uneven as Kaggle's, where class 5 stands in a single row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pathlib import Path

RANGES = {
    "Elevation": (2980, 290, 1773, 4383),
    "Aspect": (152, 110, -33, 407),
    "Slope": (15, 8, -3, 64),
    "Horizontal_Distance_To_Hydrology": (271, 226, -92, 1602),
    "Vertical_Distance_To_Hydrology": (52, 68, -317, 647),
    "Horizontal_Distance_To_Roadways": (1767, 1315, -287, 7666),
    "Hillshade_9am": (212, 31, -4, 301),
    "Hillshade_Noon": (221, 22, 49, 279),
    "Hillshade_3pm": (141, 44, -53, 272),
    "Horizontal_Distance_To_Fire_Points": (1581, 1128, -277, 8075),
}
AREAS = tuple(f"Wilderness_Area{number}" for number in range(1, 5))
SOILS = tuple(f"Soil_Type{number}" for number in range(1, 41))
EMPTY_SOILS = ("Soil_Type7", "Soil_Type15")
SHARES = {1: 0.367, 2: 0.5655, 3: 0.0489, 4: 0.0001, 6: 0.0029, 7: 0.0156}
LONE_CLASS = 5
_FEWEST_SHARE, _FEWEST_ROWS = 0.01, 400
_PIECE_ROWS = 200_000
_SAMPLE_ROWS = 20_000
_AREA_SHARES = (0.22, 0.06, 0.64, 0.08)
_COMMON_SHARE = 0.05
_SURENESS = 2.6

Numbers: TypeAlias = NDArray[np.float64]


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv with `rows` rows in random order, ids counted from 0.

    Small twins have more of the rare classes than Kaggle's share, so that both parts of the
    split have some.
    """
    rng = np.random.default_rng(seed)
    signal = _Signal(rng, rows)
    lone = int(rng.integers(rows))
    for start in range(0, rows, _PIECE_ROWS):
        patches = signal.patches(rng, min(_PIECE_ROWS, rows - start))
        patches.insert(0, "Id", range(start, start + len(patches)))
        patches["Cover_Type"] = signal.classes(rng, patches)
        if start <= lone < start + len(patches):
            patches.loc[_ordinary(rng, patches), "Cover_Type"] = LONE_CLASS
        patches.to_csv(raw / "train.csv", index=False, header=start == 0, mode="a")


class _Signal:
    """What decides the class: all of it drawn from the seed."""

    def __init__(self, rng: np.random.Generator, rows: int) -> None:
        kinds = len(SHARES)
        soils = rng.permutation(np.geomspace(0.004, 0.15, len(SOILS)))
        soils[np.isin(SOILS, EMPTY_SOILS)] = 0.0
        self.flag_shares = np.array([*rng.permutation(_AREA_SHARES), *soils])
        self.flag_worth = rng.uniform(-0.75, 0.75, (len(AREAS) + len(SOILS), kinds))
        opposed = [0.0, np.pi, *rng.uniform(0, 2 * np.pi, kinds - 2)]
        self.bands = rng.uniform(0, 2 * np.pi) + np.array(opposed)
        self.compass = rng.uniform(0, 2 * np.pi) + np.array(opposed)
        self.slopes = rng.uniform(-0.55, 0.55, (len(RANGES), kinds))
        self.base = np.zeros(kinds)
        self._calibrate(self.patches(rng, _SAMPLE_ROWS), rows)

    def _calibrate(self, sample: pd.DataFrame, rows: int) -> None:
        """Make each class as frequent as it shall be."""
        fewest = min(_FEWEST_SHARE, _FEWEST_ROWS / rows)
        wanted = np.array([max(share, fewest) for share in SHARES.values()])
        worth = self._worth(sample)
        for _ in range(40):
            chances = np.exp(worth + self.base)
            found = (chances / chances.sum(axis=1, keepdims=True)).mean(axis=0)
            self.base += np.log(wanted / wanted.sum() / found)

    def patches(self, rng: np.random.Generator, rows: int) -> pd.DataFrame:
        """Draw patches without ids and classes."""
        numbers = {
            name: rng.normal(mean, spread, rows).clip(low, high).astype(np.int16)
            for name, (mean, spread, low, high) in RANGES.items()
        }
        flags = (rng.random((rows, len(self.flag_shares))) < self.flag_shares).astype(np.int8)
        return pd.DataFrame(numbers | dict(zip((*AREAS, *SOILS), flags.T, strict=True)))

    def classes(self, rng: np.random.Generator, patches: pd.DataFrame) -> NDArray[np.int8]:
        """Draw the classes of patches."""
        worth = self._worth(patches) + self.base
        best = np.argmax(worth + rng.gumbel(size=worth.shape), axis=1)
        return np.asarray(np.array(list(SHARES), dtype=np.int8)[best])

    def _worth(self, patches: pd.DataFrame) -> Numbers:
        """Return the log odds of each class but for its frequency."""
        means, spreads = np.array(list(RANGES.values()), dtype=np.float64).T[:2]
        numbers = (patches[list(RANGES)].to_numpy(np.float64) - means) / spreads
        height, steepness = numbers[:, :1], numbers[:, 2:3].clip(-1, 2) + 1
        aspect = np.radians(patches[["Aspect"]].to_numpy(np.float64))
        odds = np.cos(2.5 * height + self.bands) + 0.5 * steepness * np.cos(aspect + self.compass)
        odds += numbers @ self.slopes
        odds += patches[[*AREAS, *SOILS]].to_numpy(np.float64) @ self.flag_worth
        return np.asarray(_SURENESS * odds)


def _ordinary(rng: np.random.Generator, patches: pd.DataFrame) -> int:
    """Return a patch with nothing rare about it: chance, not the land, made it class 5."""
    ranks = patches[list(RANGES)].rank(pct=True)
    flags = patches[[*AREAS, *SOILS]]
    rare = flags.loc[:, flags.mean() < _COMMON_SHARE]
    is_ordinary = ((ranks - 0.5).abs() < 0.45).all(axis=1) & ~rare.any(axis=1)
    return int(rng.choice(patches.index[is_ordinary] if is_ordinary.any() else patches.index))
