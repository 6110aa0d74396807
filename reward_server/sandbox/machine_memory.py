"""How much memory the server may use: the machine's, or the limit of its own cgroup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY_FILES = {"": "memory.max", "memory": "memory.limit_in_bytes"}


def memory_bytes(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory that this process and its boxes may use together."""
    fields = dict(line.split(":", 1) for line in (proc / "meminfo").read_text().splitlines())
    total = int(fields["MemTotal"].split()[0]) * 1024
    return min([total, *_limits(proc / "self" / "cgroup", groups)])


def _limits(membership: Path, groups: Path) -> Iterator[int]:
    """Yield the limits of this process's cgroup and its ancestors, in either version.

    A line of /proc/self/cgroup is `id:controllers:path`; version 2 has one line without
    controllers. Each ancestor may have a lower limit, and the kernel enforces all of them.
    """
    lines = membership.read_text().splitlines() if membership.exists() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in _MEMORY_FILES:
                root = groups / controller
                own = root / path.lstrip("/")
                for folder in (own, *own.parents):
                    yield from _read(folder / _MEMORY_FILES[controller])
                    if folder == root:
                        break


def _read(file: Path) -> Iterator[int]:
    try:
        text = file.read_text().strip()
    except OSError:
        return
    if text.isdigit():
        yield int(text)
