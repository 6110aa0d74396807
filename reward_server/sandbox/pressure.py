"""How much of a run's time was lost to other programs, which makes its duration doubtful.

The kernel counts the time in which runnable tasks waited for a core (pressure stall information):
for a cgroup, where the slot has one in the unified tree, else for the whole machine. That alone is
too much: it includes threads of one program that wait for each other, and in the machine's total
the programs of other slots. So it is capped by what others really used of this run's own cores:
the busy time in `/proc/stat`, less what the box itself used. The time that a hypervisor stole is
added. Stalls for memory count too, unless the box ran against its own memory limit.

Not measured: neighbours that share a core's caches, memory bandwidth or disks. `/proc/stat` counts
in ticks, so the first two ticks are ignored and very short runs are rarely flagged.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
_TOLERANCE_SECONDS = 2 * _TICK_SECONDS
_IDLE, _WAITING_FOR_DISK, _STOLEN, _FIELDS = 3, 4, 7, 8


@dataclass(frozen=True, slots=True)
class PressureSample:
    """Counters at one moment, all in seconds; `None` where the kernel does not count."""

    at: float
    cpu: float | None
    memory: float | None
    busy: float
    stolen: float


class PressureMonitor:
    """Reads the pressure on one box: from its cgroup, if it has one, and on its cores."""

    def __init__(
        self, group: Path | None, cores: Iterable[int], proc: Path = Path("/proc")
    ) -> None:
        has_group = group is not None and (group / "cpu.pressure").exists()
        folder, ending = (group, ".pressure") if group and has_group else (proc / "pressure", "")
        self._cpu, self._memory = folder / f"cpu{ending}", folder / f"memory{ending}"
        self._names = {f"cpu{core}" for core in cores}
        self._stat = proc / "stat"

    def read(self) -> PressureSample:
        """Return the present counters."""
        busy, stolen = self._read_cores()
        return PressureSample(
            time.monotonic(), _total(self._cpu), _total(self._memory), busy, stolen
        )

    def _read_cores(self) -> tuple[float, float]:
        busy = stolen = 0
        for line in self._stat.read_text().splitlines():
            name, *counts = line.split()
            if name in self._names:
                ticks = [int(count) for count in counts[:_FIELDS]]
                stolen += ticks[_STOLEN]
                busy += sum(ticks) - ticks[_IDLE] - ticks[_WAITING_FOR_DISK] - ticks[_STOLEN]
        return busy * _TICK_SECONDS, stolen * _TICK_SECONDS


def lost_share(
    before: PressureSample, after: PressureSample, own_seconds: float, *, was_full: bool
) -> float | None:
    """Return which share of a run was lost to others, or None where the kernel does not count.

    `own_seconds` is the CPU time of the box; `was_full` says it ran against its memory limit.
    """
    if before.cpu is None or after.cpu is None:
        return None
    elapsed = after.at - before.at
    waited = after.cpu - before.cpu
    others = _above_tolerance(after.busy - before.busy - own_seconds)
    stolen = _above_tolerance(after.stolen - before.stolen)
    lost = min(waited, others) + stolen
    if before.memory is not None and after.memory is not None and not was_full:
        lost = max(lost, after.memory - before.memory)
    return min(1.0, lost / elapsed) if elapsed > 0 else 0.0


def _above_tolerance(seconds: float) -> float:
    return max(0.0, seconds - _TOLERANCE_SECONDS)


def _total(file: Path) -> float | None:
    """Return the seconds in which some task was stalled."""
    try:
        text = file.read_text()
    except OSError:  # the kernel lacks it, or it is switched off
        return None
    for line in text.splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) / 1e6
    return None
