"""ROC AUC of the predicted chance to receive a pizza."""

from __future__ import annotations

from functools import partial

from reward_server.tasks.sdk.checks import align_binary
from reward_server.tasks.sdk.metrics import roc_auc as score

__all__ = ["align", "score"]

align = partial(align_binary, id_column="request_id", target="requester_received_pizza")
