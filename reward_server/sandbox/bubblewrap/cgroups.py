"""Limits the kernel keeps for a whole box: memory, processes, cores; and what it counted.

Both layouts are served: one tree per controller (v1) and the unified tree (v2). Each slot
has one group for its lifetime, the keeper sits in it and boxes are born into it. Where the
user may not make groups there are none, and `missing_limits` says what that leaves open.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reward_server.sandbox.bubblewrap.control_files import ControlFile, Cpus, SharedMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROOT = Path("/sys/fs/cgroup")
_FOLDER = "reward_server"
_V1_CONTROLLERS = ("memory", "pids", "cpuset", "cpuacct")
_UNIFIED = "unified"
_V2_CONTROLLERS = ("memory", "pids", "cpuset", "cpu")
_KEEPER_BYTES = 48 << 20
_KEEPER_PROCESSES = 4
_DRAIN_SECONDS = 10.0
_OPEN_WITHOUT = (
    "memory is limited per process, not per box",
    "running out of memory is reported as nonzero_exit",
    "cores are assigned, but a program may change its own affinity",
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CgroupCounters:
    """Counters of a group at one moment; `None` where the kernel does not tell."""

    oom_kills: int = 0
    processes_refused: int = 0
    cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None
    memory_refused: int = 0


@dataclass(frozen=True, slots=True)
class _Own:
    """What of a group is not the program's: the keeper, and the zygote where there is one."""

    resident_bytes: int = 0
    memory_bytes: int = _KEEPER_BYTES
    processes: int = _KEEPER_PROCESSES

    @classmethod
    def counted(cls, resident_bytes: int, processes: int) -> _Own:
        more = max(_KEEPER_PROCESSES, processes + 1)  # the first process of a box is ours too
        return cls(resident_bytes, resident_bytes + _KEEPER_BYTES, more)


class Cgroup(Protocol):
    """The kernel's account of one slot."""

    @property
    def procs_files(self) -> tuple[str, ...]:
        """The files that take a process into the group."""
        ...

    @property
    def pressure_folder(self) -> Path | None:
        """The folder of the unified tree in which the kernel counts this slot's stalls."""
        ...

    def assign(self, cores: Iterable[int]) -> None:
        """Keep the next run to these cores."""
        ...

    def settle(self) -> None:
        """Take what is in the group now as ours: programs get their limits on top of it."""
        ...

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set the limits of the next run and forget its predecessor's peak."""
        ...

    def read(self) -> CgroupCounters:
        """Return the counters as they stand."""
        ...

    def left_bytes(self) -> int:
        """Return how much memory the files of boxes take; those of dead ones go a little later."""
        ...

    def drain(self) -> None:
        """Wait, within a bound, until no process is left in the group: the killed die slowly."""
        ...

    def remove(self) -> None:
        """Take the group away; processes must have left it."""
        ...


class NoCgroup:
    """Stands in where groups cannot be made: limits nothing, counts nothing."""

    procs_files: tuple[str, ...] = ()
    pressure_folder: Path | None = None

    def assign(self, cores: Iterable[int]) -> None:
        """Assign nothing."""

    def settle(self) -> None:
        """Measure nothing."""

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set nothing."""

    def read(self) -> CgroupCounters:
        """Return empty counters."""
        return CgroupCounters()

    def left_bytes(self) -> int:
        """Return nothing."""
        return 0

    def drain(self) -> None:
        """Wait for nothing."""

    def remove(self) -> None:
        """Remove nothing."""


class CgroupV1:
    """One folder in each controller's tree."""

    def __init__(self, root: Path, name: str, cores: Iterable[int]) -> None:
        self._paths = {c: root / c / _FOLDER / name for c in _V1_CONTROLLERS}
        for path in self._paths.values():
            path.mkdir(parents=True, exist_ok=True)
        cpuset = self._paths["cpuset"]
        for folder in (cpuset.parent, cpuset):
            for file in ("cpuset.cpus", "cpuset.mems"):
                if not (folder / file).read_text().strip():
                    (folder / file).write_text((folder.parent / file).read_text())
        self._cpus = Cpus(cpuset / "cpuset.cpus", cores)
        self.pressure_folder = _make_unified(root, name)
        if self.pressure_folder is not None:
            self._paths[_UNIFIED] = self.pressure_folder
        self.procs_files = tuple(str(path / "cgroup.procs") for path in self._paths.values())
        memory = self._paths["memory"]
        self._full = ControlFile(memory / "memory.failcnt")
        self._memory = ControlFile(memory / "memory.stat")
        self._files = SharedMemory(self._memory)
        self._oom = ControlFile(memory / "memory.oom_control")
        self._peak = ControlFile(memory / "memory.max_usage_in_bytes", os.O_RDWR)
        self._refused = ControlFile(self._paths["pids"] / "pids.events")
        self._spent = ControlFile(self._paths["cpuacct"] / "cpuacct.usage")
        self._own = _Own()
        self._limits: tuple[int, int] | None = None

    def assign(self, cores: Iterable[int]) -> None:
        """Keep the next run to these cores."""
        self._cpus.set(cores)

    def settle(self) -> None:
        """Take what is in the group now as ours: programs get their limits on top of it."""
        pids = int((self._paths["pids"] / "pids.current").read_text())
        self._own = _Own.counted(self._memory.field("total_rss"), pids)
        self._files.settle()
        self._limits = None

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set the limits of the next run and forget its predecessor's peak."""
        if self._limits != (memory_bytes, processes):
            self._limit_memory(str(memory_bytes + self._own.memory_bytes))
            (self._paths["pids"] / "pids.max").write_text(str(processes + self._own.processes))
            self._limits = memory_bytes, processes
        self._peak.write("0")

    def _limit_memory(self, total: str) -> None:
        memory = self._paths["memory"]
        with_swap = memory / "memory.memsw.limit_in_bytes"
        files = [memory / "memory.limit_in_bytes", *([with_swap] if with_swap.exists() else [])]
        try:
            for file in files:
                file.write_text(total)
        except OSError:  # raising wants the other order
            for file in reversed(files):
                file.write_text(total)

    def read(self) -> CgroupCounters:
        """Return the counters as they stand."""
        return CgroupCounters(
            oom_kills=self._oom.field("oom_kill"),
            processes_refused=self._refused.field("max"),
            cpu_seconds=int(self._spent.read()) / 1e9,
            peak_memory_bytes=max(0, int(self._peak.read()) - self._own.resident_bytes),
            memory_refused=int(self._full.read()),
        )

    def left_bytes(self) -> int:
        """Return how much memory the files of boxes take; those of dead ones go a little later."""
        return self._files.left_bytes()

    def drain(self) -> None:
        """Wait, within a bound, until no process is left in the group: the killed die slowly."""
        _drain(self.procs_files[0])

    def remove(self) -> None:
        """Take the group away; processes must have left it."""
        for file in (self._memory, self._oom, self._peak, self._refused, self._spent, self._full):
            file.close()
        for path in self._paths.values():
            with contextlib.suppress(OSError):
                path.rmdir()


class CgroupV2:
    """One folder in the unified tree."""

    def __init__(self, root: Path, name: str, cores: Iterable[int]) -> None:
        parent = root / _FOLDER
        parent.mkdir(exist_ok=True)
        for folder in (root, parent):
            wanted = " ".join(f"+{controller}" for controller in _V2_CONTROLLERS)
            (folder / "cgroup.subtree_control").write_text(wanted)
        self._path = parent / name
        self._path.mkdir(exist_ok=True)
        self._cpus = Cpus(self._path / "cpuset.cpus", cores)
        self.pressure_folder: Path | None = self._path
        self.procs_files = (str(self._path / "cgroup.procs"),)
        self._memory = ControlFile(self._path / "memory.stat")
        self._files = SharedMemory(self._memory)
        self._oom = ControlFile(self._path / "memory.events")
        self._refused = ControlFile(self._path / "pids.events")
        self._spent = ControlFile(self._path / "cpu.stat")
        self._own = _Own()
        self._limits: tuple[int, int] | None = None

    def assign(self, cores: Iterable[int]) -> None:
        """Keep the next run to these cores."""
        self._cpus.set(cores)

    def settle(self) -> None:
        """Take what is in the group now as ours: programs get their limits on top of it."""
        pids = int((self._path / "pids.current").read_text())
        self._own = _Own.counted(self._memory.field("anon"), pids)
        self._files.settle()
        self._limits = None

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set the limits of the next run."""
        if self._limits == (memory_bytes, processes):
            return
        (self._path / "memory.max").write_text(str(memory_bytes + self._own.memory_bytes))
        (self._path / "pids.max").write_text(str(processes + self._own.processes))
        with contextlib.suppress(OSError):  # no swap accounting, no swap to forbid
            (self._path / "memory.swap.max").write_text("0")
        self._limits = memory_bytes, processes

    def read(self) -> CgroupCounters:
        """Return the counters as they stand; the slot's peak is of its whole life, so untold."""
        return CgroupCounters(
            oom_kills=self._oom.field("oom_kill"),
            processes_refused=self._refused.field("max"),
            cpu_seconds=self._spent.field("usage_usec") / 1e6,
            memory_refused=self._oom.field("max"),
        )

    def left_bytes(self) -> int:
        """Return how much memory the files of boxes take; those of dead ones go a little later."""
        return self._files.left_bytes()

    def drain(self) -> None:
        """Wait, within a bound, until no process is left in the group: the killed die slowly."""
        _drain(self.procs_files[0])

    def remove(self) -> None:
        """Take the group away; processes must have left it."""
        for file in (self._memory, self._oom, self._refused, self._spent):
            file.close()
        with contextlib.suppress(OSError):
            self._path.rmdir()


def _drain(procs_file: str) -> None:
    deadline = time.monotonic() + _DRAIN_SECONDS
    while time.monotonic() < deadline:
        try:
            if not Path(procs_file).read_text().strip():
                return
        except OSError:  # removed by somebody else
            return
        time.sleep(0.005)


def _make_unified(root: Path, name: str) -> Path | None:
    """Make a folder in the unified tree beside the others: without controllers it still counts."""
    folder = root / _UNIFIED / _FOLDER / name
    try:
        if (root / _UNIFIED / "cgroup.procs").exists():
            folder.mkdir(parents=True)
            return folder
    except OSError as error:
        log.warning("stalls are counted for the whole machine, not for each slot: %s", error)
    return None


def make_group(slot: int, cores: Iterable[int], root: Path = _ROOT) -> Cgroup:
    """Make the group of a slot in whichever layout this machine lets us use."""
    name = f"{os.getpid()}-{slot}-{secrets.token_hex(4)}"  # another sandbox may be beside us
    kind = _usable_layout(root)
    try:
        return NoCgroup() if kind is None else kind(root, name, cores)
    except OSError as error:
        log.warning("no cgroup for slot %s (%s): %s", slot, error, "; ".join(_OPEN_WITHOUT))
        return NoCgroup()


def missing_limits(root: Path = _ROOT) -> tuple[str, ...]:
    """Name the limits that are not kept for whole boxes on this machine."""
    if _usable_layout(root) is not None:
        return ()
    return _OPEN_WITHOUT


def remove_stale_groups(root: Path = _ROOT) -> None:
    """Remove groups that a server which is gone has left behind."""
    for folder in (root / _FOLDER, *(root / c / _FOLDER for c in (*_V1_CONTROLLERS, _UNIFIED))):
        for path in folder.glob("*-*"):
            pid = path.name.partition("-")[0]
            if pid.isdigit() and not Path("/proc", pid).exists():
                with contextlib.suppress(OSError):
                    path.rmdir()


def _usable_layout(root: Path) -> type[CgroupV1 | CgroupV2] | None:
    if all(os.access(root / controller, os.W_OK) for controller in _V1_CONTROLLERS):
        return CgroupV1
    controllers = root / "cgroup.controllers"
    if not controllers.exists() or not os.access(root / "cgroup.subtree_control", os.W_OK):
        return None
    available = controllers.read_text().split()
    return CgroupV2 if all(name in available for name in _V2_CONTROLLERS) else None
