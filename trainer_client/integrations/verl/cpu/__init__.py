"""veRL on a CPU: real training steps of a small model, to try a set-up without any GPU.

    VERL_USE_EXTERNAL_MODULES=trainer_client.integrations.verl.cpu,trainer_client.integrations.verl.plugin

veRL knows accelerators only. Here are the three parts it lacks, put in through its registries:
a platform, its FSDP engines for the device `cpu`, and a rollout `hf_cpu` that generates with
transformers. Slow, for one process, and for no model of any size.
"""

from trainer_client.integrations.verl.cpu import engine, rollout
from trainer_client.integrations.verl.cpu.platform import CpuPlatform

CpuPlatform.install()
engine.register()
rollout.register()
