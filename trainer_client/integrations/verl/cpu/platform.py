"""The CPU as one of veRL's platforms: one device, no memory of its own, gloo to talk by."""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry, set_platform

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "cpu"


def _nothing(*_args: object, **_options: object) -> None:
    """Do what an accelerator would have to, and a CPU need not."""


def _zero(*_args: object) -> int:
    return 0


def _device_module() -> ModuleType:
    """Return `torch.cpu` with what veRL asks of `torch.cuda` besides."""
    module = ModuleType("torch_cpu_as_device")
    module.__dict__.update({n: getattr(torch.cpu, n) for n in dir(torch.cpu) if n[0] != "_"})
    module.__dict__.update(
        is_available=lambda: False,  # of an accelerator
        get_device_name=lambda *_device: _NAME,
        get_rng_state=torch.get_rng_state,
        set_rng_state=torch.set_rng_state,
        mem_get_info=lambda *_device: (0, 1),
        memory_allocated=_zero,
        memory_reserved=_zero,
        max_memory_allocated=_zero,
        max_memory_reserved=_zero,
        reset_peak_memory_stats=_nothing,
        set_per_process_memory_fraction=_nothing,
        empty_cache=_nothing,
        ipc_collect=_nothing,
    )
    return module


class CpuPlatform(PlatformBase):
    """What veRL wants to know of a device."""

    device_name = vendor_name = _NAME
    # There is no device to choose or wait for, no allocator or cache of ours, and no profiler.
    set_device = synchronize = set_allocator_settings = empty_cache = _nothing
    profiler_start = profiler_stop = cudart = _nothing

    @classmethod
    def install(cls) -> None:
        """Make veRL use this platform in this process."""
        PlatformRegistry.register(_NAME)(cls)
        set_platform(cls())

    def __init__(self) -> None:
        self._module = _device_module()

    @property
    def device_module(self) -> ModuleType:
        """What stands for `torch.cuda`."""
        return self._module

    def is_available(self) -> bool:
        """There is always a CPU."""
        return True

    def current_device(self) -> Any:  # noqa: ANN401  # veRL's type is int, torch takes either
        """The only one."""
        return torch.device(_NAME)

    def device_count(self) -> int:
        """One, whatever its cores."""
        return 1

    def manual_seed(self, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:  # noqa: ARG002
        """None that has a number."""
        return None, None

    def communication_backend_name(self) -> str:
        """What processes talk by."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """A variable that hides nothing."""
        return "CPU_VISIBLE_DEVICES"

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:  # noqa: ARG002
        """Mark nothing."""
        yield

    def ray_resource_name(self) -> str:
        """Ray's resource name in veRL's placement groups; the launcher declares one such device."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """None."""
        return []

    def is_ipc_supported(self) -> bool:
        """There is no device memory to share."""
        return False
