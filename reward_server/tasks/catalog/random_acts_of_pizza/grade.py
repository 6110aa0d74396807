"""ROC AUC of the predicted chance to receive a pizza."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.tasks.sdk.checks import align_binary
from reward_server.tasks.sdk.metrics import roc_auc

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair predictions and outcomes by request."""
    return align_binary(
        submission, answers, id_column="request_id", target="requester_received_pizza"
    )


def score(truth: Floats, prediction: Floats) -> float:
    """Return the area under the ROC curve."""
    return roc_auc(truth, prediction)
