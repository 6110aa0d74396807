"""How much of a run's time was lost to others: the doubt that goes with a duration.

The kernel counts the time in which runnable tasks waited for a core (pressure stall
information), for a cgroup where we have one in the unified tree, else for the whole machine.
That alone says too much: threads of one program that wait for each other count as well, and so
do other slots' programs in the machine's total. So no more of it counts than others have really
used of this run's own cores: what `/proc/stat` says they worked, less what the box itself spent.
To that come what a hypervisor took away and the stalls for memory, unless the box ran against
its own memory limit, which is nobody else's doing.

Not seen: neighbours that share a core's caches, memory bandwidth or disks. `/proc/stat` counts in
ticks, so the first two ticks are not held against anyone and very short runs are rarely flagged.
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
_COARSENESS_SECONDS = 2 * _TICK_SECONDS
_IDLE, _WAITING_FOR_DISK, _STOLEN, _FIELDS = 3, 4, 7, 8


@dataclass(frozen=True, slots=True)
class PressureSample:
    """Counters at one moment, all in seconds; `None` where the kernel does not tell."""

    at: float
    cpu: float | None
    memory: float | None
    busy: float
    stolen: float


class PressureMonitor:
    """Reads the pressure of one box: of its group, if it has one, and of its cores."""

    def __init__(
        self, group: Path | None, cores: Iterable[int], proc: Path = Path("/proc")
    ) -> None:
        inside = group is not None and (group / "cpu.pressure").exists()
        folder, ending = (group, ".pressure") if group and inside else (proc / "pressure", "")
        self._cpu, self._memory = folder / f"cpu{ending}", folder / f"memory{ending}"
        self._names = {f"cpu{core}" for core in cores}
        self._stat = proc / "stat"

    def read(self) -> PressureSample:
        """Return the counters as they stand."""
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
    """Return which share of a run was lost to others, or None where the kernel does not tell.

    `own_seconds` is the CPU time of the box; `was_full` says it ran against its memory limit.
    """
    if before.cpu is None or after.cpu is None:
        return None
    elapsed = after.at - before.at
    waited = after.cpu - before.cpu
    others = _beyond_doubt(after.busy - before.busy - own_seconds)
    stolen = _beyond_doubt(after.stolen - before.stolen)
    lost = min(waited, others) + stolen
    if before.memory is not None and after.memory is not None and not was_full:
        lost = max(lost, after.memory - before.memory)
    return min(1.0, lost / elapsed) if elapsed > 0 else 0.0


def _beyond_doubt(seconds: float) -> float:
    return max(0.0, seconds - _COARSENESS_SECONDS)


def _total(file: Path) -> float | None:
    """Return the seconds in which some task was stalled."""
    try:
        text = file.read_text()
    except OSError:  # no such kernel, or switched off
        return None
    for line in text.splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) / 1e6
    return None
