"""Multiclass log loss of the predicted authors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.tasks.sdk.checks import align_one_hot
from reward_server.tasks.sdk.metrics import multiclass_log_loss

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair probabilities and authors by sentence."""
    return align_one_hot(submission, answers, id_column="id", classes=("EAP", "HPL", "MWS"))


def score(truth: Floats, prediction: Floats) -> float:
    """Return the multiclass log loss."""
    return multiclass_log_loss(truth, prediction)
