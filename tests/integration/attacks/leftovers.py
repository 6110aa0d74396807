"""Processes of programs that still exist although their boxes should be gone.

A process of a box is in nested process namespaces: the kernel lists one id for each of them. What
stays between programs (slot supervisors, `bwrap`, zygote servers and zygotes, the init of a warm
container) is in fewer, or is the first of its namespace.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import RunningServer

_ACCOUNTS = range(61_000, 62_024)  # the slots' by default
_STAYING_NAMESPACES = {"zygote": 2, "bubblewrap": 1}
_EXIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    account: int
    numbers: tuple[int, ...]
    line: str
    is_zombie: bool


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            lines = (entry / "status").read_text().splitlines()
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        status = dict(one.split(":", 1) for one in lines)
        numbers = tuple(int(number) for number in status.get("NSpid", "0").split())
        parent, account = int(status["PPid"]), int(status["Uid"].split()[0])
        # Zombies that the machine's init has not reaped yet do not count as leftovers.
        is_zombie = parent == 1 and status["State"].split()[0] in "ZX"
        yield _Process(int(entry.name), parent, account, numbers, line, is_zombie)


def box_processes(server: RunningServer, kind: str) -> list[str]:
    """Return what is left of boxes: below the server, orphaned, or in a container."""
    if kind == "docker":
        return list(_in_containers())
    below = set(descendants(server.pid))
    found = [
        process
        for process in _processes()
        if len(process.numbers) > _STAYING_NAMESPACES[kind] and not process.is_zombie
    ]
    orphans = {process.pid for process in found if _is_orphan(process)}
    if orphans:
        # The server of another kind of sandbox, tested at the same time, uses the same accounts:
        # what its boxes orphan on their way out is gone a moment later.
        time.sleep(_EXIT_SECONDS)
        orphans &= {process.pid for process in _processes() if _is_orphan(process)}
    return [process.line for process in found if process.pid in below | orphans]


def _is_orphan(process: _Process) -> bool:
    accounts = _ACCOUNTS if os.geteuid() == 0 else [os.geteuid()]
    return process.parent == 1 and process.account in accounts and not process.is_zombie


def _in_containers() -> Iterator[str]:
    """Find the descendants of a container init; an init alone waits for its first program."""
    found = {process.pid: process for process in _processes()}
    for process in found.values():
        above = found.get(process.parent)
        while above is not None:
            if "/inside/container_init" in above.line:
                if not _is_foreign(found.get(above.parent)):
                    yield process.line
                break
            above = found.get(above.parent)


def _is_foreign(shim: _Process | None) -> bool:
    """Tell whether a container was made by another engine than the one under test."""
    folder = Path(os.environ.get("DOCKER_HOST", "").removeprefix("unix://")).parent
    if shim is None or "containerd-shim" not in shim.line or not (folder / "exec").is_dir():
        return False  # only an engine of `.ci/engine` can be told from others
    return f"{folder}/exec/" not in shim.line
