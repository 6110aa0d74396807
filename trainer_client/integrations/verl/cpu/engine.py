"""veRL's FSDP engines on the CPU: the same classes, under another device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import verl.utils.model
import verl.workers.engine_workers
from verl.utils.distributed import initialize_global_process_group_ray
from verl.workers.engine.base import EngineRegistry

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel


def register() -> None:
    """Let veRL find its engines for the CPU, and build a critic without flash attention."""
    for model_type in ("language_model", "value_model"):
        for backend in ("fsdp", "fsdp2"):
            devices = EngineRegistry._engines[model_type][backend]  # noqa: SLF001
            devices["cpu"] = devices["cuda"]
    verl.workers.engine_workers.initialize_global_process_group_ray = _join_process_group
    verl.utils.model.load_valuehead_model = _load_critic


def _join_process_group(timeout_second: float | None = None, backend: str | None = None) -> None:
    """Join by gloo; veRL's own `cpu:gloo,cpu:gloo` names the device twice, which torch refuses."""
    initialize_global_process_group_ray(timeout_second, backend or "cpu:gloo")


def _load_critic(
    local_path: str,
    torch_dtype: torch.dtype,
    model_config: PretrainedConfig,
    trust_remote_code: bool,  # noqa: FBT001  # as veRL calls it
) -> PreTrainedModel:
    """Load a model with a value head; veRL's own loader insists on flash attention."""
    from transformers import AutoModelForTokenClassification  # noqa: PLC0415  # slow, wanted once

    return AutoModelForTokenClassification.from_pretrained(
        local_path,
        dtype=torch_dtype,
        config=model_config,
        attn_implementation="eager",
        trust_remote_code=trust_remote_code,
    )
