"""Duration-weighted gradients in veRL: extends its trainers `sync` and `colocate_async`.

    VERL_USE_EXTERNAL_MODULES=trainer_client.integrations.verl.plugin

makes veRL import this module in each of its processes, which registers both modes. After the
estimator (GAE, GRPO or another) has computed and normalised its advantages, the trainer multiplies
those of each sample by Δt / mean Δt. `returns`, which the critic learns, are unchanged. Without
the node `reward_server` in the configuration, or with `durations.enabled: false`, the trainers
behave as veRL's.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transfer_queue
from tensordict import TensorDict
from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
from verl.trainer.ppo.v1.trainer_colocate_async import PPOTrainerColocateAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from trainer_client.client.errors import RequestRefusedError, RewardServerError
from trainer_client.durations import describe, weigh
from trainer_client.measures import DURATIONS
from trainer_client.settings import NODE, RunSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from omegaconf import DictConfig
    from transfer_queue import KVBatchMeta
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer as _Trainer
else:
    _Trainer = object  # a mixin for the trainers below

_PROBE_SECONDS = 30.0
_REQUEST_SECONDS = 5.0
LOGGED = (
    "valid",
    "medal",
    "milestones",
    "timed_out",
    "improvement",
    "contended",
    "queue_seconds",
)

logger = logging.getLogger(__name__)


class DurationAware(_Trainer):
    """Extends a trainer of veRL by duration weights."""

    weighs_durations = True

    def __init__(self, config: DictConfig) -> None:
        node = config.get(NODE)
        self._run = RunSettings.read(node) if node else None
        self._probed_at = time.monotonic()
        super().__init__(config)
        if self._run is not None:
            print(f"reward server: {self._run.url}, run {self._run.run_id!r}")  # noqa: T201
            print(f"duration-aware gradient: {_summary(self._run)}")  # noqa: T201

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, object]) -> KVBatchMeta:
        batch = super()._compute_advantage(batch, metrics)
        if self._run is None:
            return batch
        rows = transfer_queue.kv_batch_get(
            keys=batch.keys,
            partition_id=batch.partition_id,
            select_fields=["advantages", "extra_fields", "data_source"],
        )
        infos = [_reward_info(fields) for fields in _plain(rows["extra_fields"])]
        is_real = np.array([not tag.get("is_padding", False) for tag in batch.tags])
        metrics.update(_means(infos, is_real))
        settings = self._run.durations
        if not settings.enabled:
            return batch
        seconds = np.array([_duration(info, settings.clock) for info in infos])
        weights = weigh(seconds, _plain(rows["data_source"]), is_real, settings)
        metrics.update(describe(seconds, weights, is_real))
        return _put_advantages(batch, rows["advantages"], weights)

    def _add_prompts_to_generate(self, num_prompts: int) -> int:
        """Replace lost samples, unless the server refuses all of them."""
        self._stop_if_refused()
        added: int = super()._add_prompts_to_generate(num_prompts)
        return added

    def _stop_if_refused(self) -> None:
        """End the run if the server refuses it. Otherwise veRL would wait for samples for ever."""
        if self._run is None or time.monotonic() - self._probed_at < _PROBE_SECONDS:
            return
        self._probed_at = time.monotonic()
        with self._run.client() as client:
            for task_id in self._run.tasks:
                try:
                    client.prompts(task_id, deadline_seconds=_REQUEST_SECONDS, improve_fraction=0.0)
                except RequestRefusedError:
                    raise
                except RewardServerError as error:
                    logger.warning("the reward server does not answer: %s", error)
                    return


class DurationAwareSync(DurationAware, PPOTrainerSync):
    """The mode that waits for all samples of a batch."""


class DurationAwareColocateAsync(DurationAware, PPOTrainerColocateAsync):
    """The mode that continues when B of m·B samples are done."""


TRAINER_REGISTRY["sync"] = DurationAwareSync
TRAINER_REGISTRY["colocate_async"] = DurationAwareColocateAsync


def _summary(run: RunSettings) -> str:
    if not run.durations.enabled:
        return "off"
    options = run.durations.model_dump(exclude={"enabled"}, exclude_defaults=True)
    return f"on {options}" if options else "on"


def _plain(column: Iterable[Any]) -> list[Any]:
    """Unwrap the values of a non-tensor column."""
    return [getattr(value, "data", value) for value in column]


def _reward_info(extra_fields: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the measures of the reward manager."""
    return (extra_fields or {}).get("reward_extra_info") or {}


def _duration(info: Mapping[str, Any], clock: str) -> float:
    """Return the duration of a sample's program."""
    if DURATIONS[clock] not in info:
        message = (
            "a sample has no duration: is reward.reward_manager the RewardServerManager of "
            "trainer_client.integrations.verl.manager?"
        )
        raise RuntimeError(message)
    return float(info[DURATIONS[clock]])


def _means(infos: Sequence[Mapping[str, Any]], is_real: np.ndarray) -> dict[str, float]:
    """Return the means of the measures of the real samples."""
    kept = [info for info, counts in zip(infos, is_real, strict=True) if counts]
    columns = {name: [float(one[name]) for one in kept if name in one] for name in LOGGED}
    return {f"{NODE}/{name}/mean": float(np.mean(v)) for name, v in columns.items() if v}


def _put_advantages(
    batch: KVBatchMeta, advantages: torch.Tensor, weights: np.ndarray
) -> KVBatchMeta:
    rows = [row * float(weight) for row, weight in zip(advantages.unbind(), weights, strict=True)]
    nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    fields = TensorDict({"advantages": nested}, batch_size=len(batch.keys))
    return transfer_queue.kv_batch_put(
        keys=batch.keys, partition_id=batch.partition_id, fields=fields
    )
