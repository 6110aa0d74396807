"""Multiclass log loss of the predicted winners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pandas.api.types import is_bool_dtype

from reward_server.tasks.sdk.checks import (
    require,
    require_columns,
    require_numeric,
    require_probabilities,
    require_rows,
    sort_alike,
)
from reward_server.tasks.sdk.metrics import multiclass_log_loss as score

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats

__all__ = ["align", "score"]

OUTCOMES = ["winner_model_a", "winner_model_b", "winner_tie"]


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair probabilities and outcomes by conversation; columns may stand in any order."""
    require_columns(submission, ("id", *OUTCOMES))
    require_rows(submission, answers)
    require_numeric(submission[OUTCOMES])
    require_probabilities(submission[OUTCOMES].to_numpy(np.float64))
    require((_sums(submission[OUTCOMES]) == 1).all(), "a row does not sum to one")
    theirs, ours = sort_alike(submission, answers, "id")
    return ours[OUTCOMES].to_numpy(np.float64), theirs[OUTCOMES].to_numpy(np.float64)


def _sums(probabilities: pd.DataFrame) -> Floats:
    """Return the sums to six digits, but in full where True and False stand beside numbers."""
    sums: Floats = probabilities.to_numpy(np.float64).sum(axis=1)
    are_mixed = len({is_bool_dtype(dtype) for dtype in probabilities.dtypes}) > 1
    return np.asarray(sums if are_mixed else sums.round(6))
