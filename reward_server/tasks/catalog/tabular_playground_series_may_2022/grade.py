"""ROC AUC of the predicted chance of state 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.tasks.sdk.checks import align_binary
from reward_server.tasks.sdk.metrics import roc_auc

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair predictions and states by row id."""
    return align_binary(submission, answers, id_column="id", target="target")


def score(truth: Floats, prediction: Floats) -> float:
    """Return the area under the ROC curve."""
    return roc_auc(truth, prediction)
