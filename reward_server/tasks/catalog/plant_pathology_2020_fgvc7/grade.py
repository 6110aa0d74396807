"""ROC AUC of each of the four predicted states of a leaf, averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pandas.api.types import is_numeric_dtype

from reward_server.tasks.sdk.checks import require, require_finite, require_rows, sort_alike
from reward_server.tasks.sdk.metrics import mean_columnwise_roc_auc as score

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats

__all__ = ["align", "score"]

STATES = ["healthy", "multiple_diseases", "rust", "scab"]


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair the order of the predictions, whatever their range, with the states of each leaf."""
    require(set(submission.columns) == {"image_id", *STATES}, "the columns differ")
    require_rows(submission, answers)
    theirs, ours = sort_alike(submission, answers, "image_id")
    truth = ours[STATES].to_numpy(np.float64)
    prediction = np.column_stack([_rank(theirs[state]) for state in STATES])
    require((truth.min(axis=0) < truth.max(axis=0)).all(), "a state is the same for all leaves")
    return truth, prediction


def _rank(values: pd.Series) -> Floats:
    """Return the rank of each number, so that large integers stay apart as floats."""
    is_read = is_numeric_dtype(values.dtype)
    numbers = values.to_numpy() if is_read else values.to_numpy(object).astype(np.float64)
    require_finite(numbers)
    return np.asarray(np.unique(numbers, return_inverse=True)[1], dtype=np.float64)
