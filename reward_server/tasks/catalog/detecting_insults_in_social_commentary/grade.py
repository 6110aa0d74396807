"""ROC AUC of the predicted chance that a comment is an insult; the comment's text is its key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.tasks.sdk.checks import align_binary
from reward_server.tasks.sdk.metrics import roc_auc as score

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats

__all__ = ["align", "score"]

KEY = "Comment"


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair predictions and labels by comment.

    Which of several equal comments is paired with which depends on how a sort treats equal
    keys: as plain objects they come in MLE-bench's order, whatever else stores text here.
    """
    return align_binary(
        submission.astype({KEY: object}),
        answers.astype({KEY: object}),
        id_column=KEY,
        target="Insult",
    )
