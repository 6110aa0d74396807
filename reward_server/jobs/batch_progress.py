"""Following a batch: what has ended is told once, and read only when it has."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.store.values import BatchItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from uuid import UUID

    from reward_server.jobs.notifier import CompletionNotifier, Told
    from reward_server.store.batches import Batches
    from reward_server.store.values import BatchRow, StoredAnswer

_SIGN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """What has ended since the last time, in order, and whether there is enough of it.

    `answers` has those that are at hand; the others are in the store.
    """

    is_complete: bool
    ended: tuple[BatchItem, ...]
    answers: Mapping[UUID, StoredAnswer]


class BatchTally:
    """How far a batch has come."""

    def __init__(self, batch: BatchRow) -> None:
        self._min_complete = batch.min_complete
        self._done = 0
        self.open: defaultdict[UUID, list[int]] = defaultdict(list)
        for item in batch.items:
            self.open[item.job_id].append(item.index)

    @property
    def is_complete(self) -> bool:
        """Return whether enough have a reward, or nothing is left to wait for."""
        return self._done >= self._min_complete or not self.open

    def count(self, items: Iterable[BatchItem]) -> tuple[BatchItem, ...]:
        """Return those of these items that have ended now, each once."""
        fresh = tuple(item for item in items if item.job_id in self.open and item.state.has_ended)
        self._done += sum(item.state.has_answer for item in fresh)
        for item in fresh:
            self.open.pop(item.job_id, None)
        return fresh


async def follow(
    batches: Batches, endings: CompletionNotifier, batch: BatchRow, seconds: float | None
) -> AsyncIterator[BatchProgress]:
    """Tell how far a batch has come, at once, at every end and now and then, until it is complete.

    Raises:
        InfrastructureError: `store_error`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    tally = BatchTally(batch)
    fresh = tally.count(batch.items)
    told: Told = {}
    with endings.expect(tally.open) as expectation:
        if tally.open:  # what ended before we began to listen
            fresh += tally.count(await batches.items_of(batch.batch_id, tuple(tally.open)))
        while True:
            if tally.is_complete:
                await batches.close(batch.batch_id)
            yield BatchProgress(tally.is_complete, fresh, {i: a for i, a in told.items() if a})
            left = _SIGN_SECONDS if deadline is None else deadline - time.monotonic()
            if tally.is_complete or left <= 0:
                return
            expectation.drop([item.job_id for item in fresh])
            told = await expectation.any(min(left, _SIGN_SECONDS))
            if not told and endings.is_stopping:
                return
            fresh = tally.count(await _items(batches, batch, tally, told))


async def _items(
    batches: Batches, batch: BatchRow, tally: BatchTally, told: Told
) -> list[BatchItem]:
    """Return the items of jobs that were told, in that order; what is at hand is not read."""
    asked = [job_id for job_id, answer in told.items() if answer is None]
    found: defaultdict[UUID, list[BatchItem]] = defaultdict(list)
    if asked:
        for item in await batches.items_of(batch.batch_id, asked):
            found[item.job_id].append(item)
    for job_id, answer in told.items():
        if answer is not None:
            indexes = tally.open.get(job_id, ())
            found[job_id] = [BatchItem(i, job_id, answer.status, None) for i in indexes]
    return [item for job_id in told for item in found[job_id]]
