"""The whole configuration of a container in one table.

Every line is a defence. The tests in `tests/integration/contract/docker` compare the table with
what the engine made of it and with what a program finds, and remove single lines to see that a
probe notices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reward_server.errors import SetupError
from reward_server.sandbox.payload import (
    ENVIRONMENT,
    INSIDE,
    TEMPORARY,
    WORK,
    build_environment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reward_server.model import Limits
    from reward_server.sandbox.docker.volumes import Layers

LABEL = "reward-server.box"
VOLUME_LABEL = "reward-server.inside"
_SEPARATORS = frozenset(":,\\")  # of mount options: a path with one would be read as another path
_INIT_BYTES = 48 << 20  # on top of the program's limit, so that the init costs it nothing
_INIT_PROCESSES = 1
_INIT_FILES = 64  # the launcher lowers this to what the program may open
_LEAST_INODES, _BYTES_PER_INODE = 4096, 4096
_MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
    "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
    "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
)  # fmt: skip
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@dataclass(frozen=True, slots=True)
class ContainerBase:
    """What all containers of one server have in common."""

    image: str
    owner: str
    layers: Layers
    runtime: str | None = None


@dataclass(frozen=True, slots=True)
class SlotIdentity:
    """What all containers of one slot have in common: their account and their GPUs."""

    uid: int
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """What a container is built for: one built for an equal plan can be used instead.

    `public_identity` tells data that was prepared again from the old data at the same path.
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


def build_config(base: ContainerBase, slot: SlotIdentity, plan: ContainerPlan) -> dict[str, Any]:
    """Return the engine's description of one container."""
    return {
        "Image": base.image,
        "Cmd": None,
        "Entrypoint": [f"{ENVIRONMENT}/bin/python", "-I", "-S", f"{INSIDE}/container_init.py"],
        "Env": ["PYTHONDONTWRITEBYTECODE=1", "LANG=C.UTF-8"],
        "User": f"{slot.uid}:{slot.uid}",
        "WorkingDir": WORK,
        "Hostname": "box",
        "Labels": {LABEL: base.owner, VOLUME_LABEL: base.layers.volume},
        "Tty": False,
        "OpenStdin": True,
        "StdinOnce": True,  # when the server dies, the init's input closes and it exits
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": True,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": build_host_config(base, slot, plan),
    }


def build_host_config(
    base: ContainerBase, slot: SlotIdentity, plan: ContainerPlan
) -> dict[str, Any]:
    """Return the part of the description that is about the host."""
    memory = plan.memory_bytes + _INIT_BYTES
    files = max(plan.open_files, _INIT_FILES)
    owned = f"uid={slot.uid},gid={slot.uid}"
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
        "PidsLimit": plan.processes + _INIT_PROCESSES,
        "CpusetCpus": ",".join(map(str, plan.cores)),
        "ShmSize": plan.disk_bytes,
        "Tmpfs": {WORK: f"{folder},mode=0700", TEMPORARY: f"{folder},mode=1777"},
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "nofile", "Soft": files, "Hard": files},
            {"Name": "msgqueue", "Soft": 0, "Hard": 0},
        ],
        "Mounts": [
            _overlay(base, base.layers.code, INSIDE),
            *(_overlay(base, folder, target) for folder, target in _public(plan)),
        ],
        "Devices": [],
        "DeviceRequests": _request_gpus(slot.gpus),
        "GroupAdd": [],
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "AutoRemove": False,  # the server reads how it died
        "Init": False,
        "OomKillDisable": False,
        "PublishAllPorts": False,
        **({"Runtime": base.runtime} if base.runtime else {}),
    }


def _overlay(base: ContainerBase, folder: str, target: str) -> dict[str, Any]:
    """Return a view of a folder that no other container shares and that is removed with this one.

    The engine cannot mark an anonymous volume as read-only; an overlay without an upper folder is.
    """
    options = f"ro,lowerdir={folder}:{base.layers.empty}"
    return {
        "Type": "volume",
        "Target": target,
        "VolumeOptions": {
            "NoCopy": True,
            "Labels": {LABEL: base.owner},
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
    """Make sure that the path of a folder can be part of mount options.

    Raises:
        SetupError: when it contains a separator of such options.
    """
    found = _SEPARATORS & set(str(folder))
    if found:
        message = (
            f"the data directory {folder} has {' and '.join(sorted(found))} in its path, "
            "which mount options cannot contain: choose another"
        )
        raise SetupError(message)


def _request_gpus(gpus: tuple[str, ...]) -> list[dict[str, Any]]:
    if not gpus:
        return []
    return [{"Driver": "nvidia", "DeviceIDs": list(gpus), "Capabilities": [["gpu", "compute"]]}]


def program_environment(threads: int) -> dict[str, str]:
    """Return the whole environment of a program, the same as in every other kind of box."""
    return {**build_environment(threads), "PWD": WORK}
