"""Duration weights for AReaL: `compute_advantages` of an actor ends with `weigh_advantages`."""

from __future__ import annotations

from typing import Any

import torch

from trainer_client.durations import weigh_all


def weigh_advantages(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Multiply the advantages of trajectories by Δt / mean Δt over all of them."""
    seconds = torch.cat([one["duration_seconds"] for one in batch]).double().cpu().numpy()
    weights = torch.from_numpy(weigh_all(seconds))
    sizes = [len(one["duration_seconds"]) for one in batch]
    for one, some in zip(batch, weights.split(sizes), strict=True):
        one["advantages"] = one["advantages"] * some.to(one["advantages"]).unsqueeze(-1)
    return batch
