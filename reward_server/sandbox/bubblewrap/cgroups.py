"""Limits that the kernel enforces for a whole box: memory, processes, cores; and its counters.

Both versions are supported: one tree for each controller (v1) and the unified tree (v2). Each slot
has one cgroup for its lifetime. The slot supervisor joins it before it starts anything and boxes
are born into it, because memory stays charged to the cgroup in which it was first used. Where the
user may not make cgroups there are none, and `missing_limits` says what is not enforced then.

Limits are written for each run on top of what the supervisor and the zygote use (`settle`
measures that), so that a program gets what its task allows. The counters only grow: what one run
used is the difference of two reads.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ROOT = Path("/sys/fs/cgroup")
_FOLDER = "reward_server"
_V1_CONTROLLERS = ("memory", "pids", "cpuset", "cpuacct")
_UNIFIED = "unified"
_V2_CONTROLLERS = ("memory", "pids", "cpuset", "cpu")
_SUPERVISOR_BYTES = 48 << 20
_SUPERVISOR_PROCESSES = 4
_DRAIN_SECONDS = 10.0
_OPEN_WITHOUT = (
    "memory is limited per process, not per box",
    "running out of memory is reported as nonzero_exit",
    "cores are assigned, but a program may change its own affinity",
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CgroupCounters:
    """Counters of a cgroup at one moment; `None` where the kernel does not count."""

    oom_kills: int = 0
    processes_refused: int = 0
    cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None
    memory_refused: int = 0


@dataclass(frozen=True, slots=True)
class _Own:
    """What in a cgroup is not the program's: the supervisor, and the zygote if there is one."""

    resident_bytes: int = 0
    memory_bytes: int = _SUPERVISOR_BYTES
    processes: int = _SUPERVISOR_PROCESSES

    @classmethod
    def measured(cls, resident_bytes: int, processes: int) -> _Own:
        more = max(_SUPERVISOR_PROCESSES, processes + 1)  # and the init of a box
        return cls(resident_bytes, resident_bytes + _SUPERVISOR_BYTES, more)


class ControlFile:
    """A control file that is held open, because every run reads and writes it."""

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self._descriptor = os.open(path, flags | os.O_CLOEXEC)

    def read(self) -> str:
        """Return its content."""
        return os.pread(self._descriptor, 4096, 0).decode()

    def field(self, name: str) -> int:
        """Return the number after a name, or zero."""
        for line in self.read().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
        return 0

    def write(self, text: str) -> None:
        """Write a value."""
        os.pwrite(self._descriptor, text.encode(), 0)

    def close(self) -> None:
        """Close it for good."""
        descriptor, self._descriptor = self._descriptor, -1  # the number may be reused
        if descriptor >= 0:
            os.close(descriptor)


class SharedMemory:
    """The memory that files of boxes use, on top of what the zygote itself has in files.

    The folders of a box are tmpfs, and System V segments are files too: the kernel counts both as
    "shmem", and frees them only when the box's namespaces are torn down.
    """

    def __init__(self, memory: ControlFile) -> None:
        self._memory = memory
        self._own_bytes = 0

    def settle(self) -> None:
        """Take the present amount as the zygote's own."""
        self._own_bytes = self._memory.field("shmem")

    def leftover_bytes(self) -> int:
        """Return the amount on top of the zygote's own."""
        now_bytes = self._memory.field("shmem")
        self._own_bytes = min(self._own_bytes, now_bytes)  # at `settle` a box was not freed yet
        return now_bytes - self._own_bytes


class Cpus:
    """The cores of a cgroup; the file is written only when they change."""

    def __init__(self, path: Path, cores: Iterable[int]) -> None:
        self._path = path
        self._cores: tuple[int, ...] = ()
        self.set(cores)

    def set(self, cores: Iterable[int]) -> None:
        """Restrict the cgroup to these cores."""
        wanted = tuple(cores)
        if wanted != self._cores:
            self._path.write_text(",".join(map(str, wanted)))
            self._cores = wanted


class Cgroup:
    """The cgroup of one slot; this class is the contract, and limits and counts nothing.

    Processes join by writing their ids to `procs_files`. `pressure_folder` is where in the unified
    tree this slot's pressure files are.
    """

    procs_files: tuple[str, ...] = ()
    pressure_folder: Path | None = None

    def assign(self, cores: Iterable[int]) -> None:
        """Restrict the next run to these cores."""

    def settle(self) -> None:
        """Measure the idle supervisor and zygote: programs get their limits on top of them."""

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set the limits of the next run and reset the peak of the previous one."""

    def read(self) -> CgroupCounters:
        """Return the present counters."""
        return CgroupCounters()

    def leftover_bytes(self) -> int:
        """Return how much memory files of boxes use; the kernel frees those of dead boxes late."""
        return 0

    def drain(self) -> None:
        """Wait for a bounded time until the cgroup is empty: the killed take a while to die."""

    def remove(self) -> None:
        """Remove the cgroup; no process may be left in it."""


class NoCgroup(Cgroup):
    """Used where cgroups cannot be made."""


class _KernelCgroup(Cgroup, ABC):
    """What both versions do alike, given the folder of each controller."""

    _resident_field: str  # of memory.stat

    def __init__(self, folders: Mapping[str, Path], cores: Iterable[int]) -> None:
        self._folders = folders
        self._cpus = Cpus(folders["cpuset"] / "cpuset.cpus", cores)
        self._held: list[ControlFile] = []
        self._memory = self._hold("memory", "memory.stat")
        self._files = SharedMemory(self._memory)
        self._refused = self._hold("pids", "pids.events")
        self._own = _Own()
        self._limits: tuple[int, int] | None = None

    def _hold(self, controller: str, file: str, flags: int = os.O_RDONLY) -> ControlFile:
        """Open a control file until the cgroup is removed."""
        self._held.append(ControlFile(self._folders[controller] / file, flags))
        return self._held[-1]

    def assign(self, cores: Iterable[int]) -> None:
        self._cpus.set(cores)

    def settle(self) -> None:
        pids = int((self._folders["pids"] / "pids.current").read_text())
        self._own = _Own.measured(self._memory.field(self._resident_field), pids)
        self._files.settle()
        self._limits = None

    def limit(self, memory_bytes: int, processes: int) -> None:
        if self._limits != (memory_bytes, processes):
            self._limit_memory(str(memory_bytes + self._own.memory_bytes))
            (self._folders["pids"] / "pids.max").write_text(str(processes + self._own.processes))
            self._limits = memory_bytes, processes

    @abstractmethod
    def _limit_memory(self, total: str) -> None:
        """Write the limit to the files of this kernel's layout."""

    def leftover_bytes(self) -> int:
        return self._files.leftover_bytes()

    def drain(self) -> None:
        deadline = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < deadline:
            try:
                if not Path(self.procs_files[0]).read_text().strip():
                    return
            except OSError:  # somebody removed it
                return
            time.sleep(0.005)

    def remove(self) -> None:
        for file in self._held:
            file.close()
        for folder in dict.fromkeys(self._folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()


class CgroupV1(_KernelCgroup):
    """One folder in each controller's tree."""

    _resident_field = "total_rss"

    def __init__(self, root: Path, name: str, cores: Iterable[int]) -> None:
        folders = {c: root / c / _FOLDER / name for c in _V1_CONTROLLERS}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        # A new cpuset is empty, and no process can join it before cores and memory nodes are set:
        # copy them from the parent, from the top down.
        cpuset = folders["cpuset"]
        for folder in (cpuset.parent, cpuset):
            for file in ("cpuset.cpus", "cpuset.mems"):
                if not (folder / file).read_text().strip():
                    (folder / file).write_text((folder.parent / file).read_text())
        self.pressure_folder = _make_unified(root, name)
        if self.pressure_folder is not None:
            folders[_UNIFIED] = self.pressure_folder
        self.procs_files = tuple(str(folder / "cgroup.procs") for folder in folders.values())
        super().__init__(folders, cores)
        # failcnt grows when the limit is met, also where reclaiming helps: a full box, not a
        # killed one. oom_control counts the kills. Writing to max_usage resets the peak.
        self._full = self._hold("memory", "memory.failcnt")
        self._oom = self._hold("memory", "memory.oom_control")
        self._peak = self._hold("memory", "memory.max_usage_in_bytes", os.O_RDWR)
        self._spent = self._hold("cpuacct", "cpuacct.usage")

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set the limits of the next run and reset the peak of the previous one."""
        super().limit(memory_bytes, processes)
        self._peak.write("0")

    def _limit_memory(self, total: str) -> None:
        memory = self._folders["memory"]
        with_swap = memory / "memory.memsw.limit_in_bytes"
        files = [memory / "memory.limit_in_bytes", *([with_swap] if with_swap.exists() else [])]
        try:
            for file in files:
                file.write_text(total)
        except OSError:  # memsw may never be below memory: raising takes the other order
            for file in reversed(files):
                file.write_text(total)

    def read(self) -> CgroupCounters:
        """Return the present counters."""
        return CgroupCounters(
            oom_kills=self._oom.field("oom_kill"),
            processes_refused=self._refused.field("max"),
            cpu_seconds=int(self._spent.read()) / 1e9,
            peak_memory_bytes=max(0, int(self._peak.read()) - self._own.resident_bytes),
            memory_refused=int(self._full.read()),
        )


class CgroupV2(_KernelCgroup):
    """One folder in the unified tree."""

    _resident_field = "anon"

    def __init__(self, root: Path, name: str, cores: Iterable[int]) -> None:
        parent = root / _FOLDER
        parent.mkdir(exist_ok=True)
        # A controller works in a folder only if every folder above delegates it, and a folder that
        # delegates may hold no processes itself: only the slots' own folders do.
        for folder in (root, parent):
            wanted = " ".join(f"+{controller}" for controller in _V2_CONTROLLERS)
            (folder / "cgroup.subtree_control").write_text(wanted)
        own = parent / name
        own.mkdir(exist_ok=True)
        self.pressure_folder = own
        self.procs_files = (str(own / "cgroup.procs"),)
        super().__init__(dict.fromkeys(_V2_CONTROLLERS, own), cores)
        # One file counts both the kills (oom_kill) and how often the limit was met (max).
        self._oom = self._hold("memory", "memory.events")
        self._spent = self._hold("cpu", "cpu.stat")

    def _limit_memory(self, total: str) -> None:
        folder = self._folders["memory"]
        (folder / "memory.max").write_text(total)
        with contextlib.suppress(OSError):  # no swap accounting, no swap to forbid
            (folder / "memory.swap.max").write_text("0")

    def read(self) -> CgroupCounters:
        """Return the present counters, without a peak: v2 has only that of the whole lifetime."""
        return CgroupCounters(
            oom_kills=self._oom.field("oom_kill"),
            processes_refused=self._refused.field("max"),
            cpu_seconds=self._spent.field("usage_usec") / 1e6,
            memory_refused=self._oom.field("max"),
        )


def _make_unified(root: Path, name: str) -> Path | None:
    """Make a folder in the unified tree of a v1 machine: only there is pressure counted."""
    folder = root / _UNIFIED / _FOLDER / name
    try:
        if (root / _UNIFIED / "cgroup.procs").exists():
            folder.mkdir(parents=True)
            return folder
    except OSError as error:
        log.warning("pressure is counted for the whole machine, not for each slot: %s", error)
    return None


def make_group(slot: int, cores: Iterable[int], root: Path = _ROOT) -> Cgroup:
    """Make the cgroup of a slot in whichever version this machine allows."""
    name = f"{os.getpid()}-{slot}-{secrets.token_hex(4)}"  # this process may have another sandbox
    kind = _usable_version(root)
    try:
        return NoCgroup() if kind is None else kind(root, name, cores)
    except OSError as error:
        log.warning("no cgroup for slot %s (%s): %s", slot, error, "; ".join(_OPEN_WITHOUT))
        return NoCgroup()


def missing_limits(root: Path = _ROOT) -> tuple[str, ...]:
    """Name the limits that are not enforced for whole boxes on this machine."""
    if _usable_version(root) is not None:
        return ()
    return _OPEN_WITHOUT


def remove_stale_groups(root: Path = _ROOT) -> None:
    """Remove cgroups that a dead server has left."""
    for folder in (root / _FOLDER, *(root / c / _FOLDER for c in (*_V1_CONTROLLERS, _UNIFIED))):
        for path in folder.glob("*-*"):
            pid = path.name.partition("-")[0]
            if pid.isdigit() and not Path("/proc", pid).exists():
                with contextlib.suppress(OSError):
                    path.rmdir()


def _usable_version(root: Path) -> type[CgroupV1 | CgroupV2] | None:
    if all(os.access(root / controller, os.W_OK) for controller in _V1_CONTROLLERS):
        return CgroupV1
    controllers = root / "cgroup.controllers"
    if not controllers.exists() or not os.access(root / "cgroup.subtree_control", os.W_OK):
        return None
    available = controllers.read_text().split()
    return CgroupV2 if all(name in available for name in _V2_CONTROLLERS) else None
