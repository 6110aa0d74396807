"""Knowing at once that a worker of this machine is dead, instead of waiting for its leases.

A worker holds a lock on a file of its name in the data directory; the kernel drops it when the
process dies. Workers elsewhere are known by their leases alone.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

_FOLDER = "workers"


@contextmanager
def present(data_dir: Path, worker: UUID) -> Iterator[None]:
    """Show that this worker lives for as long as the block lasts."""
    folder = data_dir / _FOLDER
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
    for path in (data_dir / _FOLDER).glob("*-*"):
        worker = UUID(path.name)
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if worker in workers:
                dead.add(worker)
            else:
                path.unlink(missing_ok=True)
    return dead
