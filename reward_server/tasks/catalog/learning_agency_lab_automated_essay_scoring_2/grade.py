"""Quadratic weighted kappa of the predicted scores."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

from reward_server.tasks.sdk.checks import (
    require_columns,
    require_numeric,
    require_rows,
    require_whole,
    sort_alike,
)

if TYPE_CHECKING:
    import pandas as pd

Whole: TypeAlias = NDArray[np.int64 | np.uint64 | np.float64 | np.bool_]


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Whole, Whole]:
    """Pair predicted and given scores by essay; any whole numbers will do, 3.0 among them."""
    require_columns(submission, ("essay_id", "score"))
    require_rows(submission, answers)
    require_numeric(submission[["score"]])
    theirs, ours = sort_alike(submission, answers, "essay_id")
    truth, prediction = ours["score"].to_numpy(), theirs["score"].to_numpy()
    require_whole(truth)
    require_whole(prediction)
    return truth, prediction


def score(truth: Whole, prediction: Whole) -> float:
    """Return the kappa, in which a label weighs by its rank among all labels that occur."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing but one label: not a number, so not valid
        return float(cohen_kappa_score(prediction, truth, weights="quadratic"))
