"""The whole container as one table: what a program is given, and nothing else.

Every line is a defence. `tests/integration/contract/test_docker_*` compare the table with what the
engine made of it and with what a program finds, and remove single lines to see that a probe
notices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reward_server.errors import SetupError
from reward_server.sandbox.bubblewrap.command import ENVIRONMENT, INSIDE, build_environment
from reward_server.sandbox.payload import TEMPORARY, WORK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reward_server.model import Limits
    from reward_server.sandbox.docker.volumes import Layers

LABEL = "reward-server.box"
VOLUME_LABEL = "reward-server.inside"
_SEPARATORS = frozenset(":,\\")  # of a mount's options: a path with one would be another path
_WARDEN_BYTES = 48 << 20  # on top of the program's own, so that the warden costs it nothing
_WARDEN_PROCESSES = 1
_WARDEN_FILES = 64  # the launcher lowers this to what the program may open
_LEAST_INODES, _BYTES_PER_INODE = 4096, 4096
_MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
    "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
    "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
)  # fmt: skip
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@dataclass(frozen=True, slots=True)
class EngineFeatures:
    """What all containers of one server are made from, and laid over."""

    image: str
    owner: str
    layers: Layers
    runtime: str | None = None


@dataclass(frozen=True, slots=True)
class SlotFolders:
    """What one slot gives each of its containers."""

    uid: int
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """What a container is built for: one built for an equal plan can be used instead.

    `public_identity` tells data that was prepared anew from the old at the same path.
    """

    task_id: str
    public: str | None
    public_identity: tuple[int, int]
    cores: tuple[int, ...]
    memory_bytes: int
    disk_bytes: int
    processes: int
    open_files: int

    @classmethod
    def of(
        cls,
        task_id: str,
        public: str | None,
        identity: tuple[int, int],
        cores: tuple[int, ...],
        limits: Limits,
    ) -> ContainerPlan:
        """Return the plan for a program of this task with these limits."""
        return cls(
            task_id,
            public,
            identity,
            cores,
            limits.memory_bytes,
            limits.disk_bytes,
            limits.processes,
            limits.open_files,
        )


def build_config(kit: EngineFeatures, place: SlotFolders, plan: ContainerPlan) -> dict[str, Any]:
    """Return the engine's description of one container."""
    return {
        "Image": kit.image,
        "Cmd": None,
        "Entrypoint": [f"{ENVIRONMENT}/bin/python", "-I", "-S", f"{INSIDE}/container_init.py"],
        "Env": ["PYTHONDONTWRITEBYTECODE=1", "LANG=C.UTF-8"],
        "User": f"{place.uid}:{place.uid}",
        "WorkingDir": WORK,
        "Hostname": "box",
        "Labels": {LABEL: kit.owner, VOLUME_LABEL: kit.layers.volume},
        "Tty": False,
        "OpenStdin": True,
        "StdinOnce": True,  # when the server goes, the warden's input closes and the box ends
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": True,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": build_host_config(kit, place, plan),
    }


def build_host_config(
    kit: EngineFeatures, place: SlotFolders, plan: ContainerPlan
) -> dict[str, Any]:
    """Return the part of the description that is about the host."""
    memory = plan.memory_bytes + _WARDEN_BYTES
    files = max(plan.open_files, _WARDEN_FILES)
    owned = f"uid={place.uid},gid={place.uid}"
    inodes = max(_LEAST_INODES, plan.disk_bytes // _BYTES_PER_INODE)
    folder = f"rw,nosuid,nodev,exec,size={plan.disk_bytes},nr_inodes={inodes},{owned}"
    return {
        "NetworkMode": "none",
        "IpcMode": "private",
        "PidMode": "",
        "UTSMode": "",
        "CgroupnsMode": "private",
        "Privileged": False,
        "CapDrop": ["ALL"],
        "CapAdd": [],
        "SecurityOpt": ["no-new-privileges"],
        "ReadonlyRootfs": True,
        "MaskedPaths": list(_MASKED),
        "ReadonlyPaths": list(_READ_ONLY),
        "Memory": memory,
        "MemorySwap": memory,
        "PidsLimit": plan.processes + _WARDEN_PROCESSES,
        "CpusetCpus": ",".join(map(str, plan.cores)),
        "ShmSize": plan.disk_bytes,
        "Tmpfs": {WORK: f"{folder},mode=0700", TEMPORARY: f"{folder},mode=1777"},
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "nofile", "Soft": files, "Hard": files},
            {"Name": "msgqueue", "Soft": 0, "Hard": 0},
        ],
        "Mounts": [
            _overlay(kit, kit.layers.code, INSIDE),
            *(_overlay(kit, folder, target) for folder, target in _public(plan)),
        ],
        "Devices": [],
        "DeviceRequests": _ask_for_gpus(place.gpus),
        "GroupAdd": [],
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "AutoRemove": False,  # how it died must still be readable
        "Init": False,
        "OomKillDisable": False,
        "PublishAllPorts": False,
        **({"Runtime": kit.runtime} if kit.runtime else {}),
    }


def _overlay(kit: EngineFeatures, folder: str, target: str) -> dict[str, Any]:
    """Return a view of a folder that no other container shares, and that goes with this one.

    The engine marks no anonymous volume as read-only; an overlay with no upper folder is.
    """
    options = f"ro,lowerdir={folder}:{kit.layers.empty}"
    return {
        "Type": "volume",
        "Target": target,
        "VolumeOptions": {
            "NoCopy": True,
            "Labels": {LABEL: kit.owner},
            "DriverConfig": {
                "Name": "local",
                "Options": {"type": "overlay", "device": "overlay", "o": options},
            },
        },
    }


def _public(plan: ContainerPlan) -> Iterator[tuple[str, str]]:
    if plan.public is not None:
        yield plan.public, f"/workdir/{plan.task_id}/prepared/public"


def refuse_odd_path(folder: Path) -> None:
    """Make sure that the engine can be told of a folder.

    Raises:
        SetupError: when its path cannot stand among the options of a mount.
    """
    found = _SEPARATORS & set(str(folder))
    if found:
        message = (
            f"the data directory {folder} has {' and '.join(sorted(found))} in its path, "
            "which no container can be given: choose another"
        )
        raise SetupError(message)


def _ask_for_gpus(gpus: tuple[str, ...]) -> list[dict[str, Any]]:
    if not gpus:
        return []
    return [{"Driver": "nvidia", "DeviceIDs": list(gpus), "Capabilities": [["gpu", "compute"]]}]


def program_environment(threads: int) -> dict[str, str]:
    """Return the whole environment of a program, the same as in every other kind of box."""
    return {**build_environment(threads), "PWD": WORK}
