"""Made-up photographs of apple leaves under Kaggle's names, some with a disease or two.

Rust is a scatter of small orange specks, scab a few soft dark blotches. Light, tint, leaf and
background vary far more than either does to the mean colour of a picture, so that a model
must look at rare colours and at small patches. Pictures of large twins are as large as
Kaggle's. Kaggle's unlabelled test pictures are left out: no preparation reads them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from reward_server.tasks.catalog.plant_pathology_2020_fgvc7.prepare import STATES, split

if TYPE_CHECKING:
    from pathlib import Path

SHARES = np.array([0.283, 0.05, 0.342, 0.325])
HAS_RUST, HAS_SCAB = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])
BACKGROUNDS = np.array([[96, 110, 70], [110, 100, 74], [80, 92, 66], [120, 120, 105]])
_LARGE_FROM_ROWS = 1000
_QUALITY = 90

Numbers: TypeAlias = NDArray[np.floating]
Size: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of this twin's leaves and of their diseases."""

    leaf: Numbers
    rust: Numbers
    pale: Numbers
    scab: Numbers


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv and one picture per row."""
    rng = np.random.default_rng(seed)
    states = _states(rng, rows)
    ids = [f"Train_{number}" for number in range(rows)]
    one_hot = np.eye(len(STATES), dtype=int)[states]
    table = pd.DataFrame({"image_id": ids} | dict(zip(STATES, one_hot.T, strict=True)))
    table.to_csv(raw / "train.csv", index=False)
    (raw / "images").mkdir()
    is_large = rows >= _LARGE_FROM_ROWS
    drawn, shown = ((384, 256), (2048, 1365)) if is_large else ((96, 64), (96, 64))
    painter = Painter(rng, _palette(rng), drawn)
    for name, state in zip(ids, states, strict=True):
        picture = painter.paint(rust=HAS_RUST[state], scab=HAS_SCAB[state])
        picture.resize(shown).save(raw / "images" / f"{name}.jpg", quality=_QUALITY)


def _states(rng: np.random.Generator, rows: int) -> NDArray[np.intp]:
    """Draw states such that each has its share, and at least one leaf, on both sides."""
    states = np.zeros(rows, dtype=np.intp)
    for side in split(pd.DataFrame(index=range(rows))):
        fewest = np.maximum(1, SHARES * len(side)).astype(int)
        sure = np.repeat(np.arange(len(STATES)), fewest)[: len(side)]
        rest = rng.choice(len(STATES), len(side) - len(sure), p=SHARES)
        states[side.index] = rng.permutation(np.concatenate([sure, rest]))
    return states


def _palette(rng: np.random.Generator) -> Palette:
    colours = [[96, 132, 62], [176, 104, 40], [160, 150, 60], [74, 78, 44]]
    leaf, rust, pale, scab = (colours + rng.normal(0, 4, (4, 3))).astype(np.float32)
    return Palette(leaf, rust, pale, scab)


class Painter:
    """Paints leaves of one twin, all of one size."""

    def __init__(self, rng: np.random.Generator, palette: Palette, size: Size) -> None:
        self._rng, self._palette = rng, palette
        width, height = size
        across = np.linspace(-width / height, width / height, width, dtype=np.float32)
        self._y, self._x = np.meshgrid(
            np.linspace(-1, 1, height, dtype=np.float32), across, indexing="ij"
        )

    def paint(self, *, rust: int, scab: int) -> Image.Image:
        """Return one picture."""
        rng, palette = self._rng, self._palette
        along, across = self._turn(rng.uniform(-math.pi, math.pi), rng.normal(0, 0.12, 2).tolist())
        inside, leaf = self._leaf(along, across)
        if scab:
            blotches = self._spots(along, across, int(rng.integers(2, 6)), (0.1, 0.24), 0.12)
            leaf = _cover(leaf, rng.uniform(0.45, 0.85) * blotches, palette.scab)
            leaf = leaf + rng.uniform(0, 0.33) * (palette.scab - leaf)
        if rust:
            specks = self._spots(along, across, int(rng.integers(4, 14)), (0.035, 0.08), 0.05)
            leaf = _cover(leaf, rng.uniform(0.6, 0.95) * specks, palette.rust)
            leaf = leaf + rng.uniform(0, 0.33) * (palette.pale - leaf)
        pixels = _cover(self._background(), inside, leaf)
        return Image.fromarray(self._expose(pixels))

    def _turn(self, angle: float, shift: list[float]) -> tuple[Numbers, Numbers]:
        x, y = self._x - shift[0], self._y - shift[1]
        cosine, sine = math.cos(angle), math.sin(angle)
        return cosine * x + sine * y, cosine * y - sine * x

    def _leaf(self, along: Numbers, across: Numbers) -> tuple[Numbers, Numbers]:
        rng, side = self._rng, np.abs(across)
        length, width = rng.uniform(1.0, 1.4), rng.uniform(0.5, 0.8)
        inside = _soften(width * (1 - (along / length) ** 2) - side, 0.05)
        veins = np.sin(rng.uniform(14, 20) * (along - 0.6 * side) + rng.uniform(0, 6))
        shade = 1 + rng.uniform(0.01, 0.06) * veins + 0.3 * _soften(0.02 - side, 0.03)
        colour = self._palette.leaf * np.float32(rng.normal(1, [0.07, 0.05, 0.1]))
        return inside, shade[..., None] * colour

    def _spots(
        self, along: Numbers, across: Numbers, count: int, radii: tuple[float, float], edge: float
    ) -> Numbers:
        rng = self._rng
        length = rng.uniform(-0.8, 0.8, count)
        width = rng.uniform(-0.5, 0.5, count) * (1 - length**2)
        spots = np.array([length, width, rng.uniform(*radii, count)], dtype=np.float32)
        u, v, radius = spots[:, :, None, None]
        depth = (radius - np.hypot(along - u, across - v)).max(axis=0)
        return _soften(depth, edge)

    def _background(self) -> Numbers:
        rng = self._rng
        colour = np.float32(rng.choice(BACKGROUNDS) * rng.normal(1, 0.04, 3))
        waves = np.zeros_like(self._x)
        for x, y, phase in rng.normal(0, [3, 3, 6], (3, 3)).tolist():
            waves += np.sin(x * self._x + y * self._y + phase)
        return (1 + 0.14 * waves)[..., None] * colour

    def _expose(self, pixels: Numbers) -> NDArray[np.uint8]:
        rng = self._rng
        bright, x, y = rng.normal(0, [0.17, 0.15, 0.15]).tolist()
        light = np.exp(bright + x * self._x + y * self._y)
        tint = np.float32(np.exp(rng.normal(0, 0.03, 3)))
        grain = 4 * rng.standard_normal(pixels.shape, dtype=np.float32)
        exposed = pixels * light[..., None] * tint + grain
        return np.asarray(exposed.clip(0, 255), dtype=np.uint8)


def _soften(depth: Numbers, edge: float) -> Numbers:
    """Turn a depth below an edge into an opacity from 0 to 1."""
    return (depth / edge + 0.5).clip(0, 1)


def _cover(below: Numbers, opacity: Numbers, above: Numbers) -> Numbers:
    return below + opacity[..., None] * (above - below)
