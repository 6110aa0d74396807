"""What a cluster leaves on the machine after all its processes have ended."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import descendants, is_alive, read_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GROUPS = Path("/sys/fs/cgroup")
_GONE_SECONDS = 60.0


class Family:
    """All processes ever seen below some others, identified by pid and start time."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, str]] = set()
        self._heads: set[int] = set()

    def note(self, heads: Iterable[int]) -> None:
        for head in heads:
            self._heads.add(head)
            for pid in (head, *_below(head)):
                self._seen.add((pid, _begun(pid)))

    def living(self) -> list[str]:
        return [
            f"process {pid} {read_line(pid).decode(errors='replace')[:100]!r}"
            for pid, begun in self._seen
            if begun and is_alive(pid) and _begun(pid) == begun
        ]

    def groups(self) -> list[str]:
        """Return the remaining control groups of these processes."""
        found = [*_GROUPS.glob("reward_server/*-*"), *_GROUPS.glob("*/reward_server/*-*")]
        heads = {str(head) for head in self._heads}
        return [f"group {path}" for path in found if path.name.partition("-")[0] in heads]


def _below(pid: int) -> list[int]:
    try:
        return descendants(pid)
    except OSError:  # gone meanwhile
        return []


def _begun(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _mounts(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [f"mount {line.split()[4]}" for line in lines if f"{folder}/" in line.split()[4]]


def find_leftovers(family: Family, data_dir: Path) -> list[str]:
    """Return what is left after a while; killed processes need a moment to exit."""
    for left in _looks(family, data_dir):
        if not left:
            return []
    return left


def _looks(family: Family, data_dir: Path) -> Iterator[list[str]]:
    deadline = time.monotonic() + _GONE_SECONDS
    while True:
        yield [*family.living(), *family.groups(), *_mounts(data_dir)]
        if time.monotonic() > deadline:
            return
        time.sleep(0.2)
