"""Whether veRL's trainers in this process weigh by durations.

Apart from the plug-in, because importing that would register it: too late for a trainer that has
been chosen, and in a process that has none.
"""

from __future__ import annotations

from verl.trainer.ppo.v1 import trainer_base

PLUGIN = "trainer_client.integrations.verl.plugin"


def check_registered(trainer_mode: str) -> None:
    """See to it that the trainer of this mode weighs by durations.

    Raises:
        RuntimeError: when it would train without.
    """
    trainer = trainer_base.TRAINER_REGISTRY.get(trainer_mode)
    if not getattr(trainer, "weighs_durations", False):
        message = (
            f"the trainer {trainer_mode!r} does not weigh gradients by durations: use sync or "
            f"colocate_async, with {PLUGIN} among VERL_USE_EXTERNAL_MODULES in all of veRL's "
            "processes (or reward_server.durations.enabled=false)"
        )
        raise RuntimeError(message)
