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
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline import post_score, warm_up
from server import serving, temporary_folder
from traces import show_kinds, take

if TYPE_CHECKING:
    from server import Server
    from traces import Traces

_CLIENTS = 2 * len(os.sched_getaffinity(0))
_SETTLE_SECONDS = 20.0


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


def settle(look: functools.partial[Traces], before: Traces) -> list[str]:
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
            look = functools.partial(take, server.pid, temporary, with_containers=is_docker)
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
