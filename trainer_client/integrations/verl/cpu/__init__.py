"""veRL on a CPU: real training steps of a small model, to try a setup without a GPU.

    VERL_USE_EXTERNAL_MODULES=trainer_client.integrations.verl.cpu,trainer_client.integrations.verl.plugin

veRL supports accelerators only. This package adds the three missing parts through veRL's
registries: a platform, FSDP engines for the device `cpu`, and a rollout `hf_cpu` that generates
with transformers. It is slow, runs in one process, and suits only tiny models.
"""

from trainer_client.integrations.verl.cpu import engine, rollout
from trainer_client.integrations.verl.cpu.platform import CpuPlatform

CpuPlatform.install()
engine.register()
rollout.register()
