"""The metrics of the tasks, from scikit-learn, on arrays that passed `checks`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from scipy import stats
from sklearn import metrics

if TYPE_CHECKING:
    from reward_server.tasks.sdk.checks import Floats


def roc_auc(truth: Floats, prediction: Floats) -> float:
    """Return the area under the ROC curve."""
    return float(metrics.roc_auc_score(truth, prediction))


def mean_columnwise_roc_auc(truth: Floats, prediction: Floats) -> float:
    """Return the area under the ROC curve, averaged over the columns."""
    return float(metrics.roc_auc_score(truth, prediction, average="macro"))


def multiclass_log_loss(truth: Floats, prediction: Floats) -> float:
    """Return the mean negative log likelihood of one-hot labels, clipped but not rescaled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(metrics.log_loss(truth, prediction))


def mean_columnwise_rmsle(truth: Floats, prediction: Floats) -> float:
    """Return the root mean squared logarithmic error, averaged over the columns."""
    return float(metrics.root_mean_squared_log_error(truth, prediction))


def pearson_correlation(truth: Floats, prediction: Floats) -> float:
    """Return Pearson's correlation coefficient; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(stats.pearsonr(truth, prediction).statistic)
