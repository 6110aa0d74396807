"""The one way in which a job starts in this process.

Two statements lease jobs to this worker: the claim loop's, and the one that accepts a job and
leases it in the same step. Each runs inside a window. An open window does two things.

It reserves slots, so that two statements under way together never lease more jobs than the worker
has slots for.

It remembers cancellations. A lease commits in the database before this process reads the
statement's result. A cancellation that arrives in between finds no job to revoke here, and is never
sent again. The window keeps it until the leased job has started.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

    from reward_server.store.values import LeasedJob


@dataclass(slots=True, eq=False)
class _Window:
    slots: int
    leased: list[LeasedJob] = field(default_factory=list)
    early_cancellations: set[UUID] = field(default_factory=set)


class LeaseWindows:
    """The statements under way that may lease jobs to this worker."""

    def __init__(
        self, start: Callable[[LeasedJob], None], check: Callable[[set[UUID]], None]
    ) -> None:
        self._start = start
        self._check = check
        self._open: list[_Window] = []

    @property
    def reserved_slots(self) -> int:
        """Return how many slots are set aside for jobs that may be leased at any moment."""
        return sum(window.slots for window in self._open)

    @contextmanager
    def open(self, slots: int) -> Iterator[list[LeasedJob]]:
        """Cover one statement; the caller adds the jobs it leased to the list.

        When the window closes, these jobs start, and those that may have been cancelled meanwhile
        are checked. The slots pass from reserved to used without an await in between, so that no
        other task sees them free.
        """
        window = _Window(slots)
        self._open.append(window)
        try:
            yield window.leased
        finally:
            self._open.remove(window)
            for job in window.leased:
                self._start(job)
            unsure = window.early_cancellations.intersection(job.job_id for job in window.leased)
            if unsure:
                # A job can be cancelled, accepted again and leased anew, all in one window: only
                # the database knows whether this lease is the one that was cancelled.
                self._check(unsure)

    def remember_ended(self, job_ids: Iterable[UUID]) -> None:
        """Note that these jobs have ended, in case one of them is just being leased."""
        for window in self._open:
            window.early_cancellations.update(job_ids)
