"""What the kernel counted during one run: its cgroup's counters, and the pressure by others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reward_server.sandbox.pressure import PressureMonitor, lost_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reward_server.sandbox.bubblewrap.cgroups import Cgroup
    from reward_server.sandbox.run_report import RunReport


class ResourceUsage:
    """Created right before a run, when its slot has nothing else to do."""

    def __init__(self, group: Cgroup, cores: Iterable[int]) -> None:
        self._group = group
        self._monitor = PressureMonitor(group.pressure_folder, cores)
        self._before = group.read()
        self._pressure_before = self._monitor.read()

    @property
    def oom_kills(self) -> int:
        """Return how often the kernel has killed for memory since."""
        return self._group.read().oom_kills - self._before.oom_kills

    def add_to(self, report: RunReport) -> RunReport:
        """Return the report with the kernel's counters in place of the supervisor's."""
        before, after = self._before, self._group.read()
        cpu_seconds = report.cpu_seconds
        if before.cpu_seconds is not None and after.cpu_seconds is not None:
            cpu_seconds = after.cpu_seconds - before.cpu_seconds or cpu_seconds
        was_full = after.memory_refused > before.memory_refused
        return replace(
            report,
            cpu_seconds=cpu_seconds,
            peak_memory_bytes=after.peak_memory_bytes or report.peak_memory_bytes,
            oom_kills=after.oom_kills - before.oom_kills,
            processes_refused=after.processes_refused - before.processes_refused,
            pressure=lost_share(
                self._pressure_before, self._monitor.read(), cpu_seconds, was_full=was_full
            ),
        )
