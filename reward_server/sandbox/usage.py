"""The kernel's account of one run: what its group counted, and what others took from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.sandbox.bubblewrap.cgroups import CgroupCounters
from reward_server.sandbox.pressure import PressureMonitor, lost_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reward_server.sandbox.bubblewrap.cgroups import Cgroup


class ResourceUsage:
    """Opened right before a run, when its slot has nothing else to do."""

    def __init__(self, group: Cgroup, cores: Iterable[int]) -> None:
        self._group = group
        self._barometer = PressureMonitor(group.pressure_folder, cores)
        self._before = group.read()
        self._calm = self._barometer.read()

    def count(self) -> CgroupCounters:
        """Return what the group has counted since."""
        before, after = self._before, self._group.read()
        spent = None
        if before.cpu_seconds is not None and after.cpu_seconds is not None:
            spent = after.cpu_seconds - before.cpu_seconds
        return CgroupCounters(
            oom_kills=after.oom_kills - before.oom_kills,
            processes_refused=after.processes_refused - before.processes_refused,
            cpu_seconds=spent,
            peak_memory_bytes=after.peak_memory_bytes,
            memory_refused=after.memory_refused - before.memory_refused,
        )

    def pressure(self, own_seconds: float, *, was_full: bool) -> float | None:
        """Return the share of the time since that others took, where the kernel tells."""
        return lost_share(self._calm, self._barometer.read(), own_seconds, was_full=was_full)
