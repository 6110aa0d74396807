"""Loaded by veRL in every process of a training run: writes the trainer's own tensors to files.

What stock veRL computed is read from the queue before our trainer sees it, what the actor is
updated with when it is, and the gradients where the optimizer would use them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transfer_queue
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.workers.engine.fsdp.transformer_impl import FSDPEngine

FOLDER = Path(os.environ["RECORDING_FOLDER"])
_stock_advantage = PPOTrainer._compute_advantage
_stock_update = PPOTrainer._update_actor
_stock_step = FSDPEngine.optimizer_step


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else getattr(value, "data", value)


def _column(values: Any) -> list[Any]:
    return [_plain(v) for v in (values.unbind() if isinstance(values, torch.Tensor) else values)]


def _read(batch: Any, names: list[str]) -> list[dict[str, Any]]:
    got = transfer_queue.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=names
    )
    columns = [_column(got[name]) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _compute_advantage(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
    batch = _stock_advantage(self, batch, metrics)
    self.recorded = _read(batch, ["advantages", "returns"])
    return batch


def _update_actor(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
    rows = _read(batch, ["advantages", "returns", "extra_fields", "data_source", "extra_info"])
    for key, tag, before, row in zip(batch.keys, batch.tags, self.recorded, rows, strict=True):
        row.update(key=key, is_padding=bool(tag.get("is_padding", False)), stock=before)
        row["info"] = row.pop("extra_fields")["reward_extra_info"]
    floats = {name: value for name, value in metrics.items() if isinstance(value, float)}
    file = FOLDER / f"step-{self.global_steps}.json"
    file.write_text(json.dumps({"rows": rows, "metrics": floats}))
    return _stock_update(self, batch, metrics)


def _optimizer_step(self: Any) -> Any:
    kind = type(self).__name__
    gradients = {
        name: (p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad).float().numpy()
        for name, p in self.module.named_parameters()
        if p.grad is not None
    }
    count = len(list(FOLDER.glob(f"gradients-{kind}-*.npz")))
    np.savez(FOLDER / f"gradients-{kind}-{count}.npz", **gradients)
    return _stock_step(self)


PPOTrainer._compute_advantage = _compute_advantage
PPOTrainer._update_actor = _update_actor
FSDPEngine.optimizer_step = _optimizer_step
