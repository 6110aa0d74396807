"""Soak test: one server runs many small programs and must not leak anything.

Some programs print, some crash, some leave children behind, some write files, some time out. The
server's processes, mounts, cgroups, containers, volumes, temporary files, descriptors and memory
afterwards are compared with those after a warm-up. The exit code is 1 if anything has grown, or if
an answer is not the expected one.

    .venv/bin/python benchmarks/soak.py [--programs 10000] [--kind bubblewrap]
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import post_score, warm_up
from server import serving, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from server import Server

_CLIENTS = 2 * len(os.sched_getaffinity(0))
_SETTLE_SECONDS = 20.0
_GROUPS = Path("/sys/fs/cgroup")
_SERVER_SLACK_BYTES = 32 << 20
_SUPERVISOR_SLACK_BYTES = 4 << 20
_DESCRIPTOR_SLACK = 4  # connections to clients and to Postgres come and go


@dataclass(frozen=True, slots=True)
class ProgramKind:
    """One kind of program, its share, and the error kind it must have."""

    name: str
    code: str
    weight: int
    error: str
    wall_seconds: float = 60.0


KINDS = (
    ProgramKind("print", "print(1)\n", 10, "no_submission"),
    ProgramKind("crash", "raise ValueError('as planned')\n", 4, "nonzero_exit"),
    ProgramKind(
        "children",
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(3600)\n",
        3,
        "no_submission",
    ),
    ProgramKind(
        "files",
        "for number in range(50):\n"
        "    for folder in ('.', '/tmp', '/dev/shm'):\n"
        "        open(f'{folder}/{number}', 'wb').write(bytes(10_000))\n",
        2,
        "no_submission",
    ),
    ProgramKind("time", "import time\ntime.sleep(3600)\n", 1, "timeout", 0.3),
)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Everything that programs could leave behind, counted at one moment."""

    processes: int
    mounts: int
    groups: int
    containers: int
    volumes: int
    files: int
    descriptors: int
    server_bytes: int
    supervisor_bytes: int

    def growth(self, before: Footprint) -> list[str]:
        """Return what has grown by more than its normal variation."""
        slack = {
            "descriptors": _DESCRIPTOR_SLACK,
            "server_bytes": _SERVER_SLACK_BYTES,
            "supervisor_bytes": _SUPERVISOR_SLACK_BYTES,
        }
        return [
            f"{name}: {getattr(before, name)} -> {getattr(self, name)}"
            for name in self.__slots__
            if getattr(self, name) > getattr(before, name) + slack.get(name, 0)
        ]


def measure_footprint(server: int, temporary: Path, *, with_containers: bool) -> Footprint:
    """Count what belongs to a server: its family, its groups, its temporary folder."""
    family = [pid for pid in _family(server) if "postgres" not in _line(pid)]
    supervisors = [pid for pid in family if "slot_supervisor.py" in _line(pid)]
    groups = [*_GROUPS.glob(f"reward_server/{server}-*")]
    groups += _GROUPS.glob(f"*/reward_server/{server}-*")
    members = {pid for group in groups for pid in _text(group / "cgroup.procs").split()}
    return Footprint(
        processes=len({str(pid) for pid in family} | members),
        mounts=_count_mounts((server, *supervisors), temporary.parent),
        groups=len(groups),
        containers=_count("ps", "--all") if with_containers else 0,
        volumes=_count("volume", "ls") if with_containers else 0,
        files=sum(1 for _ in temporary.rglob("*")),
        descriptors=sum(
            len([*Path(f"/proc/{pid}/fd").iterdir()]) for pid in (server, *supervisors)
        ),
        server_bytes=_resident(server),
        supervisor_bytes=max((_resident(pid) for pid in supervisors), default=0),
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


def run_many(server: Server, count: int) -> Counter[str]:
    """Score that many programs, a few at a time, and count unexpected answers."""
    turns = itertools.cycle([kind for kind in KINDS for _ in range(kind.weight)])
    kinds = list(itertools.islice(turns, count))
    shares = [kinds[client::_CLIENTS] for client in range(_CLIENTS)]
    with ThreadPoolExecutor(_CLIENTS) as pool:
        return sum(pool.map(lambda share: _run_share(server, share), shares), Counter())


def _run_share(server: Server, share: list[ProgramKind]) -> Counter[str]:
    runners = {
        kind: post_score(server.port, kind.code, wall_seconds=kind.wall_seconds) for kind in KINDS
    }
    surprises: Counter[str] = Counter()
    for kind in share:
        error = runners[kind]()["error"]
        if error is None or error["kind"] != kind.error:
            surprises[f"{kind.name}: {error and error['kind']}"] += 1
    return surprises


def settle(look: functools.partial[Footprint], before: Footprint) -> list[str]:
    """Compare until nothing has grown, or the time to shrink again is over."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while growth := look().growth(before):
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return growth


def main() -> None:
    """Run the programs and report what has grown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--kind", default="bubblewrap")
    options = parser.parse_args()
    with temporary_folder() as parent:
        temporary = parent / "tmp"
        temporary.mkdir(mode=0o755)
        extra = {"REWARD_SERVER_SANDBOX__KIND": options.kind, "TMPDIR": str(temporary)}
        with serving(parent / "data", extra=extra) as server:
            is_docker = options.kind == "docker"
            look = functools.partial(
                measure_footprint, server.pid, temporary, with_containers=is_docker
            )
            warm_up(server.port)
            run_many(server, max(200, options.programs // 20))
            before = look()
            begun = time.monotonic()
            surprises = run_many(server, options.programs)
            rate = options.programs / (time.monotonic() - begun)
            growth = settle(look, before)
            print(f"{options.programs} programs, {rate:.1f} a second; {show_kinds(server.pid)}")
            after = dataclasses.asdict(look())
    for name, value in dataclasses.asdict(before).items():
        print(f"{name:14}{value:>14}{after[name]:>14}")
    for line in (*growth, *(f"{count} times {what}" for what, count in surprises.items())):
        print(f"out of bounds: {line}")
    sys.exit(1 if growth or surprises else 0)


if __name__ == "__main__":
    main()
