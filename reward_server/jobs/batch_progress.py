"""Following a batch: each item is reported once, when it has ended, and read only then."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.store.values import BatchItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from uuid import UUID

    from reward_server.jobs.notifier import CompletionNotifier, Completions
    from reward_server.store.batches import Batches
    from reward_server.store.values import BatchRow, StoredAnswer

_KEEP_ALIVE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """What has ended since the last report, in order, and whether the batch is complete.

    `answers` holds the answers at hand; the others are in the store.
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
        """Return whether enough items have a reward, or no item is left to wait for."""
        return self._done >= self._min_complete or not self.open

    def count(self, items: Iterable[BatchItem]) -> tuple[BatchItem, ...]:
        """Count the items that have ended, and return those that were not counted before."""
        fresh = tuple(item for item in items if item.job_id in self.open and item.state.has_ended)
        self._done += sum(item.state.has_answer for item in fresh)
        for item in fresh:
            self.open.pop(item.job_id, None)
        return fresh


async def follow(
    batches: Batches, notifier: CompletionNotifier, batch: BatchRow, seconds: float | None
) -> AsyncIterator[BatchProgress]:
    """Report how far a batch has come: at once, at every end and every few seconds.

    The last report is that of a complete batch, or the one at the deadline.

    Raises:
        InfrastructureError: `store_error`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    tally = BatchTally(batch)
    fresh = tally.count(batch.items)
    completions: Completions = {}
    with notifier.subscribe(tally.open) as subscription:
        if tally.open:  # what ended before the subscription
            fresh += tally.count(await batches.items_of(batch.batch_id, tuple(tally.open)))
        while True:
            if tally.is_complete:
                await batches.close(batch.batch_id)
            yield BatchProgress(
                tally.is_complete, fresh, {i: a for i, a in completions.items() if a}
            )
            left = _KEEP_ALIVE_SECONDS if deadline is None else deadline - time.monotonic()
            if tally.is_complete or left <= 0:
                return
            subscription.drop([item.job_id for item in fresh])
            completions = await subscription.wait(min(left, _KEEP_ALIVE_SECONDS))
            if not completions and notifier.is_stopping:
                return
            fresh = tally.count(await _items(batches, batch, tally, completions))


async def _items(
    batches: Batches, batch: BatchRow, tally: BatchTally, completions: Completions
) -> list[BatchItem]:
    """Return the items of completed jobs, in that order, reading only those not at hand."""
    missing = [job_id for job_id, answer in completions.items() if answer is None]
    found: defaultdict[UUID, list[BatchItem]] = defaultdict(list)
    if missing:
        for item in await batches.items_of(batch.batch_id, missing):
            found[item.job_id].append(item)
    for job_id, answer in completions.items():
        if answer is not None:
            indexes = tally.open.get(job_id, ())
            found[job_id] = [BatchItem(i, job_id, answer.status, None) for i in indexes]
    return [item for job_id in completions for item in found[job_id]]
