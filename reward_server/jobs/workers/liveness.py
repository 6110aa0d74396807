"""Knowing at once that a worker of this machine is dead, instead of waiting for its leases.

A worker holds a lock on a file of its name in the data directory; the kernel drops it when the
process dies. Workers elsewhere are known by their leases alone: locks do not reach over every
network, so that a folder is named after the one running kernel that is to be believed.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def present(data_dir: Path, worker: UUID) -> Iterator[None]:
    """Show that this worker lives for as long as the block lasts."""
    folder = _folder(data_dir)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / str(worker)
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def find_dead(data_dir: Path, workers: Collection[UUID]) -> set[UUID]:
    """Return which of these workers have died on this machine; their files are removed."""
    dead = set()
    for path in _folder(data_dir).glob("*-*"):
        worker = UUID(path.name)
        if _is_held(path):
            continue
        if worker in workers:
            dead.add(worker)
        else:
            path.unlink(missing_ok=True)
    return dead


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:  # it has left in order
        return False
    return False


def _folder(data_dir: Path) -> Path:
    return data_dir / "workers" / _BOOT_ID.read_text().strip()
