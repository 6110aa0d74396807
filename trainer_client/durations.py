"""Duration weights: Δt / mean Δt over the samples that a step trains on.

In the same time, fast programs yield more samples than slow ones. Weighting each gradient by its
duration removes that bias (arXiv 2509.01684, section 3.1). The functions take and return arrays
and depend on no trainer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trainer_client.settings import DurationSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]


def weigh(
    seconds: Floats, tasks: Sequence[str], is_real: Flags, settings: DurationSettings
) -> Floats:
    """Return a weight for each row. Padding does not count towards means and keeps 1.

    If all rows of a mean took no time, they keep 1.

    Raises:
        ValueError: a real row has no duration.
    """
    if not (np.isfinite(seconds[is_real]) & (seconds[is_real] >= 0)).all():
        message = "a sample that is trained on has no duration"
        raise ValueError(message)
    powers = np.maximum(seconds, settings.minimum_seconds) ** settings.exponent
    weights = np.ones(len(seconds))
    for rows in _rows_by_mean(tasks, is_real, by_task=settings.mean == "task"):
        mean = powers[rows].mean()
        if mean > 0:
            weights[rows] = powers[rows] / mean
    return weights if settings.clip is None else np.minimum(weights, settings.clip)


def weigh_all(seconds: Floats) -> Floats:
    """Return the weights of samples that all count, with the default settings."""
    everything = np.ones(len(seconds), dtype=bool)
    return weigh(seconds, [""] * len(seconds), everything, DurationSettings())


def _rows_by_mean(tasks: Sequence[str], is_real: Flags, *, by_task: bool) -> list[Flags]:
    """Return the non-empty sets of rows that share a mean."""
    if not by_task:
        return [is_real] if is_real.any() else []
    names = np.asarray(tasks, dtype=object)
    return [is_real & (names == name) for name in sorted(set(names[is_real]))]


def describe(seconds: Floats, weights: Floats, is_real: Flags) -> dict[str, float]:
    """Return the metrics of a batch.

    `effective_samples` is Kish's effective sample size.
    """
    taken, given = seconds[is_real], weights[is_real]
    if not len(taken):
        return {}
    squares = float((given**2).sum())
    return {
        "duration/mean": float(taken.mean()),
        "duration/std": float(taken.std()),
        "duration/min": float(taken.min()),
        "duration/max": float(taken.max()),
        "duration/weight_max": float(given.max()),
        "duration/effective_samples": float(given.sum() ** 2 / squares) if squares else 0.0,
    }
