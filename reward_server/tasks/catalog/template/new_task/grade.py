"""ROC AUC of the predicted chance to fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.tasks.sdk.checks import align_binary
from reward_server.tasks.sdk.metrics import roc_auc

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair predictions and outcomes by machine; whatever is raised here makes it invalid."""
    return align_binary(submission, answers, id_column="machine_id", target="failed")


def score(truth: Floats, prediction: Floats) -> float:
    """Return the area under the ROC curve; nothing a program wrote may make this fail."""
    return roc_auc(truth, prediction)
