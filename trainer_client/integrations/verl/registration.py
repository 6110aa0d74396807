"""Checks whether veRL's trainers in this process weight gradients by durations.

This module does not import the plug-in, because that would register it: too late for a trainer
that veRL has already chosen, and in processes without a trainer.
"""

from __future__ import annotations

from verl.trainer.ppo.v1 import trainer_base

PLUGIN = "trainer_client.integrations.verl.plugin"


def check_registered(trainer_mode: str) -> None:
    """Check that the trainer of this mode weights gradients by durations.

    Raises:
        RuntimeError: it does not.
    """
    trainer = trainer_base.TRAINER_REGISTRY.get(trainer_mode)
    if not getattr(trainer, "weighs_durations", False):
        message = (
            f"the trainer {trainer_mode!r} does not weigh gradients by durations: use sync or "
            f"colocate_async, with {PLUGIN} among VERL_USE_EXTERNAL_MODULES in all of veRL's "
            "processes (or reward_server.durations.enabled=false)"
        )
        raise RuntimeError(message)
