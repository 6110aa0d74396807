"""Detecting dead workers of this machine at once, before their leases expire.

A worker locks a file named after it in the data directory; the kernel drops the lock when the
process dies. Locks do not work over every network file system, so each boot of a machine has a
folder of its own, and workers of other machines count as dead only when their leases expire.
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
def hold_liveness_lock(data_dir: Path, worker: UUID) -> Iterator[None]:
    """Hold the lock that shows that this worker is alive, for as long as the block lasts."""
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
    """Return which of these workers have died on this machine, and delete leftover lock files."""
    dead = set()
    for path in _folder(data_dir).glob("*-*"):
        worker = UUID(path.name)
        if _is_locked(path):
            continue
        if worker in workers:
            dead.add(worker)
        else:
            path.unlink(missing_ok=True)
    return dead


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:  # the worker has stopped in order
        return False
    return False


def _folder(data_dir: Path) -> Path:
    return data_dir / "workers" / _BOOT_ID.read_text().strip()
