"""What a server leaves on the machine while it runs, counted so that growth can be seen."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_GROUPS = Path("/sys/fs/cgroup")
_SERVER_SLACK_BYTES = 32 << 20
_KEEPER_SLACK_BYTES = 4 << 20
_DESCRIPTOR_SLACK = 4  # connections to clients and to Postgres come and go


@dataclass(frozen=True, slots=True)
class Traces:
    """All that programs could leave behind, at one moment."""

    processes: int
    mounts: int
    groups: int
    containers: int
    volumes: int
    files: int
    descriptors: int
    server_bytes: int
    keeper_bytes: int

    def growth(self, before: Traces) -> list[str]:
        """Name what is more than before, beyond what comes and goes by itself."""
        slack = {
            "descriptors": _DESCRIPTOR_SLACK,
            "server_bytes": _SERVER_SLACK_BYTES,
            "keeper_bytes": _KEEPER_SLACK_BYTES,
        }
        return [
            f"{name}: {getattr(before, name)} -> {getattr(self, name)}"
            for name in self.__slots__
            if getattr(self, name) > getattr(before, name) + slack.get(name, 0)
        ]


def take(server: int, temporary: Path, *, with_containers: bool) -> Traces:
    """Count what belongs to a server: its family, its groups, its temporary folder."""
    family = [pid for pid in _family(server) if "postgres" not in _line(pid)]
    keepers = [pid for pid in family if "keeper.py" in _line(pid)]
    groups = [*_GROUPS.glob(f"reward_server/{server}-*")]
    groups += _GROUPS.glob(f"*/reward_server/{server}-*")
    members = {pid for group in groups for pid in _text(group / "cgroup.procs").split()}
    return Traces(
        processes=len({str(pid) for pid in family} | members),
        mounts=_count_mounts((server, *keepers), temporary.parent),
        groups=len(groups),
        containers=_count("ps", "--all") if with_containers else 0,
        volumes=_count("volume", "ls") if with_containers else 0,
        files=sum(1 for _ in temporary.rglob("*")),
        descriptors=sum(len([*Path(f"/proc/{pid}/fd").iterdir()]) for pid in (server, *keepers)),
        server_bytes=_resident(server),
        keeper_bytes=max((_resident(pid) for pid in keepers), default=0),
    )


def show_kinds(server: int) -> str:
    """Return the names of a server's processes, for a person who looks for the one too many."""
    names = Counter(_text(Path(f"/proc/{pid}/comm")).strip() for pid in _family(server))
    return ", ".join(f"{count} {name}" for name, count in sorted(names.items()))


def _family(pid: int) -> list[int]:
    texts = [_text(file) for file in Path(f"/proc/{pid}/task").glob("*/children")]
    below = [int(part) for text in texts for part in text.split()]
    return below + [lower for child in below for lower in _family(child)]


def _count_mounts(pids: Iterable[int], folder: Path) -> int:
    """Count the mounts below a folder, and those that only these processes have."""
    here = set(_mounts("self"))
    return sum(
        mount not in here or mount.startswith(str(folder)) for pid in pids for mount in _mounts(pid)
    )


def _mounts(pid: int | str) -> list[str]:
    return [line.split()[4] for line in _text(Path(f"/proc/{pid}/mountinfo")).splitlines()]


def _line(pid: int) -> str:
    return _text(Path(f"/proc/{pid}/cmdline"))


def _resident(pid: int) -> int:
    fields = _text(Path(f"/proc/{pid}/statm")).split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # gone meanwhile
        return ""


def _count(*question: str) -> int:
    """Count what the engine lists."""
    line = ["docker", *question, "--quiet"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return len(done.stdout.split())
