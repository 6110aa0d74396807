"""The files by which the kernel configures and reports a cgroup."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


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
