"""Multiclass log loss of the predicted authors."""

from __future__ import annotations

from functools import partial

from reward_server.tasks.sdk.checks import align_one_hot
from reward_server.tasks.sdk.metrics import multiclass_log_loss as score

__all__ = ["align", "score"]

align = partial(align_one_hot, id_column="id", classes=("EAP", "HPL", "MWS"))
