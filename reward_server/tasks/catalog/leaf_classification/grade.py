"""Multiclass log loss of the predicted species."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.catalog.leaf_classification.species import SPECIES
from reward_server.tasks.sdk.checks import (
    require,
    require_distributions,
    require_rows,
    sort_alike,
)
from reward_server.tasks.sdk.metrics import multiclass_log_loss as score

if TYPE_CHECKING:
    import pandas as pd

    from reward_server.tasks.sdk.checks import Floats

__all__ = ["align", "score"]


def align(submission: pd.DataFrame, answers: pd.DataFrame) -> tuple[Floats, Floats]:
    """Pair probabilities and species by leaf; the columns may stand in any order."""
    columns = list(SPECIES)
    require(set(submission.columns) == {"id", *columns}, "the columns differ")
    require_rows(submission, answers)
    require_distributions(submission[columns])
    theirs, ours = sort_alike(submission, answers, "id")
    return ours[columns].to_numpy(np.float64), theirs[columns].to_numpy(np.float64)
