"""A replay buffer for veRL that cancels the programs of dropped samples.

    trainer.v1.trainer_mode=colocate_async trainer.v1.colocate_async.num_warmup_batches=m-1
    trainer.v1.sampler.max_off_policy_strategy=drop trainer.v1.sampler.max_off_policy_threshold=1
    trainer.v1.sampler.custom_sampler.path=pkg://trainer_client.integrations.verl.buffer
    trainer.v1.sampler.custom_sampler.name=CancellingReplayBuffer
    +trainer.v1.sampler.sampler_kwargs.reward_server='${reward_server}'

A run with these settings continues with the first B of m·B samples. With threshold 1 it drops the
leftovers of a step; with a larger one it carries them over for that many steps. veRL drops a group
only once it has ended. This buffer cancels its programs as soon as they are too old to train on.
Their samples are then lost, and veRL replaces them by new prompts.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync

from trainer_client.client.errors import RewardServerError
from trainer_client.client.outages import Backoff
from trainer_client.settings import NODE, RunSettings

if TYPE_CHECKING:
    from trainer_client.client.blocking import RewardClient

log = logging.getLogger(__name__)

_MODE = "colocate_async"
_TRAINING = "train"
_CANCEL_SECONDS = 5.0
CANCELLED = "training/off_policy/cancelled_programs"


class CancellingReplayBuffer(ReplayBufferAsync):
    """Samples as veRL does, and cancels the programs of groups that are too old to be sampled.

    A group of step p may be sampled at step s while s - p < threshold.
    """

    def __init__(self, trainer_mode: str, sampler_kwargs: Any, **others: Any) -> None:  # noqa: ANN401
        super().__init__(trainer_mode=trainer_mode, sampler_kwargs=sampler_kwargs, **others)
        if trainer_mode != _MODE:
            message = f"CancellingReplayBuffer is for trainer.v1.trainer_mode={_MODE}"
            raise ValueError(message)
        _refuse_filter(sampler_kwargs)
        self._settings = RunSettings.read(sampler_kwargs.get(NODE))
        self._client: RewardClient = self._settings.client()
        self._backoff = Backoff("programs that nobody waits for run on")
        self._oldest_step = 0
        self._cancelled = 0

    def wait_for_sampleable(
        self, global_steps: int, partition_id: str, target_count: int
    ) -> tuple[set[str], dict[str, Any]]:
        """Wait as veRL does, and cancel groups that are too old meanwhile."""
        if self._drops(partition_id):
            self._oldest_step = global_steps + 1 - self.max_off_policy_threshold
        found: tuple[set[str], dict[str, Any]] = super().wait_for_sampleable(
            global_steps, partition_id, target_count
        )
        return found

    def sample(
        self, global_steps: int, partition_id: str, batch_size: int
    ) -> tuple[Any, dict[str, Any]]:
        """Sample as veRL does, and cancel groups that the next step cannot sample."""
        batch, metrics = super().sample(global_steps, partition_id, batch_size)
        if not self._drops(partition_id):
            return batch, metrics
        self._oldest_step = global_steps + 2 - self.max_off_policy_threshold
        self._cancel()
        cancelled, self._cancelled = self._cancelled, 0
        return batch, {**metrics, CANCELLED: cancelled}

    def _wait_for_next_poll(self, partition_id: str, last_debug_time: float) -> float:
        """Cancel programs that old groups have submitted since the last poll, and wait."""
        if self._drops(partition_id) and self._has_old_groups(partition_id):
            self._cancel()
        waited: float = super()._wait_for_next_poll(partition_id, last_debug_time)
        return waited

    def _drops(self, partition_id: str) -> bool:
        has_limit = self.max_off_policy_threshold is not None
        return partition_id == _TRAINING and has_limit and self.max_off_policy_strategy == "drop"

    def _has_old_groups(self, partition_id: str) -> bool:
        running = self.pending_keys[partition_id] | self.running_keys[partition_id]
        steps = self.prompt_global_steps[partition_id]
        return any(steps[key] < self._oldest_step for key in running)

    def _cancel(self) -> None:
        """Cancel the programs of groups that are too old. Without a server the run continues."""
        if self._oldest_step < 1 or not self._backoff.may_ask():
            return
        try:
            self._cancelled += self._client.cancel_run(
                self._settings.run_id,
                up_to_step=self._oldest_step - 1,
                deadline_seconds=_CANCEL_SECONDS,
            )
        except RewardServerError as error:
            self._backoff.failed(error)
        else:
            self._backoff.answered()


def _refuse_filter(sampler_kwargs: Any) -> None:  # noqa: ANN401
    """Refuse group filtering, which veRL does not pass on to custom samplers."""
    root = sampler_kwargs._get_root()  # noqa: SLF001 - the only way up from here
    algorithm = root.get("algorithm") or {}
    if (algorithm.get("filter_groups") or {}).get("enable"):
        message = "algorithm.filter_groups is not done by CancellingReplayBuffer: turn one off"
        raise ValueError(message)
