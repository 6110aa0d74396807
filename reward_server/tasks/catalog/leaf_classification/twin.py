"""Made-up leaves of 99 species under Kaggle's names and columns, with silhouettes.

A species has its own outline and its own histograms of margin and texture; a leaf is a noisy
copy. No family of features is enough alone, and neighbouring bins vary together, so that a
model that weighs all of them beats one that looks at a family or at plain distances. Kaggle's
unlabelled test leaves are left out: no preparation reads them.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from reward_server.tasks.catalog.leaf_classification.species import SPECIES
from reward_server.tasks.sdk.raw import write_zip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BINS = 64
HARMONICS = 6
_LARGE_FROM_ROWS = 990
_QUALITY = 85

Numbers: TypeAlias = NDArray[np.float64]


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train.csv.zip with as many leaves of each species as of any other, and images.zip."""
    rng = np.random.default_rng(seed)
    species = rng.permutation(np.resize(rng.permutation(len(SPECIES)), rows))
    ids = np.sort(rng.permutation(rows * 8 // 5)[:rows]) + 1
    outlines = _outlines(rng, species)
    families = {
        "margin": _histograms(rng, species, 512),
        "shape": (outlines / outlines.sum(axis=1, keepdims=True) / 20).round(9),
        "texture": _histograms(rng, species, 1024),
    }
    table = pd.DataFrame({"id": ids, "species": np.array(SPECIES)[species]})
    columns = [_columns(family, values) for family, values in families.items()]
    csv = pd.concat([table, *columns], axis=1).to_csv(index=False).encode()
    write_zip(raw / "train.csv.zip", [("train.csv", csv)])
    largest = 900 if rows >= _LARGE_FROM_ROWS else 48
    write_zip(raw / "images.zip", _silhouettes(rng, ids, outlines, largest))


def _columns(family: str, values: Numbers) -> pd.DataFrame:
    names = [f"{family}{number}" for number in range(1, BINS + 1)]
    return pd.DataFrame(values, columns=names)


def _histograms(rng: np.random.Generator, species: NDArray[np.intp], total: int) -> Numbers:
    """Draw histograms around one of each species; nuisances move many bins at once."""
    typical = rng.normal(0, 1, BINS) + rng.normal(0, 0.7, (len(SPECIES), BINS))
    nuisances = rng.normal(0, 1.0, (len(species), 8)) @ rng.normal(0, 0.45, (8, BINS))
    noise = rng.normal(0, 0.75, (len(species), BINS))
    weights = np.exp(typical[species] + nuisances + noise)
    chances = weights / weights.sum(axis=1, keepdims=True)
    return np.asarray((rng.multinomial(total, chances) / total).round(6))


def _outlines(rng: np.random.Generator, species: NDArray[np.intp]) -> Numbers:
    """Return the distance of each leaf's edge from its middle, at as many angles as bins."""
    angles = 2 * np.pi * np.arange(BINS) / BINS
    waves = np.outer(np.arange(1, HARMONICS + 1), angles)
    basis = np.concatenate([np.cos(waves), np.sin(waves)])
    damping = np.tile(1 / np.arange(1, HARMONICS + 1), 2)
    typical = rng.normal(0, 0.22, (len(SPECIES), 2 * HARMONICS))
    own = rng.normal(0, 0.16, (len(species), 2 * HARMONICS))
    edge = ((typical[species] + own) * damping) @ basis + rng.normal(0, 0.02, (len(species), BINS))
    return np.asarray(np.exp(edge))


def _silhouettes(
    rng: np.random.Generator, ids: NDArray[np.intp], outlines: Numbers, largest: int
) -> Iterator[tuple[str, bytes]]:
    angles = 2 * np.pi * np.arange(BINS) / BINS
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    for number, outline in zip(ids, outlines, strict=True):
        points = outline[:, None] * directions
        points -= points.min(axis=0)
        points *= largest * rng.uniform(0.5, 1) / points.max()
        width, height = (points.max(axis=0) + 2).astype(int).tolist()
        picture = Image.new("L", (width, height))
        ImageDraw.Draw(picture).polygon([(x, y) for x, y in points.tolist()], fill=255)
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=_QUALITY)
        yield f"images/{number}.jpg", buffer.getvalue()
