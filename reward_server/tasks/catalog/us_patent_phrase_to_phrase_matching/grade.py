"""Pearson correlation of the predicted similarities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.sdk.checks import (
    require,
    require_columns,
    require_finite,
    require_numeric,
    require_rows,
    sort_alike,
)
from reward_server.tasks.sdk.metrics import pearson_correlation as score

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats

__all__ = ["align", "score"]


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair predicted and true scores by id; what has no correlation is refused."""
    require_columns(submission, ("id", "score"))
    require_rows(submission, answers)
    require_numeric(submission[["score"]])
    theirs, ours = sort_alike(submission, answers, "id")
    prediction = theirs["score"].to_numpy(np.float64)
    require_finite(prediction)
    require((prediction != prediction[0]).any(), "all values are equal")
    return ours["score"].to_numpy(np.float64), prediction
