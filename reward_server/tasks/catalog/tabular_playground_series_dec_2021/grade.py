"""Accuracy of the predicted cover types.

Any whole number is a class, and so is any text: it is merely never the right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pandas.api.types import is_numeric_dtype

from reward_server.tasks.sdk.checks import (
    require,
    require_columns,
    require_rows,
    require_whole,
    sort_alike,
)

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats

TARGET = "Cover_Type"


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair predicted and true classes by patch."""
    require_rows(submission, answers)
    require_columns(submission, ("Id", TARGET))
    theirs, ours = sort_alike(submission, answers, "Id")
    truth = ours[TARGET].to_numpy(np.float64)
    if is_numeric_dtype(theirs[TARGET].dtype):
        prediction = theirs[TARGET].to_numpy()
        require_whole(prediction)
        return truth, prediction.astype(np.float64)
    require(all(isinstance(name, str) for name in theirs[TARGET]), "a value is missing")
    is_binary = max(theirs[TARGET].nunique(), len(np.unique(truth))) <= 2
    require(not is_binary, "texts and numbers are not told apart when there are only two")
    return truth, np.full(len(truth), np.nan)


def score(truth: Floats, prediction: Floats) -> float:
    """Return the share of patches whose class is right."""
    return float(np.mean(truth == prediction))
