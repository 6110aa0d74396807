"""A count of the queue that overlaps an insertion neither loses nor doubles a job."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from reward_server.errors import InfrastructureError, QueueFullError
from reward_server.jobs.admission import Admission
from reward_server.model import ErrorKind
from reward_server.store.values import QueueState

QUOTA = 3


class CountedQueue:
    """A queue whose count replies when the test lets it, with the snapshot the test gives."""

    def __init__(self) -> None:
        self.may_reply = asyncio.Event()
        self.may_reply.set()
        self.snapshot: Counter[str] = Counter()

    async def state(self) -> QueueState:
        await self.may_reply.wait()
        return QueueState(self.snapshot.total(), 0, 0.0, dict(self.snapshot))


def make(queue: CountedQueue) -> Admission:
    fake: Any = queue
    notifier: Any = SimpleNamespace(notifications=0)
    return Admission(fake, notifier, 100, {"guest": QUOTA})


def admitted(admission: Admission) -> int:
    """Return how many more jobs the guest may queue now."""
    for number in range(QUOTA + 1):
        try:
            admission.admit("guest", ticket=str(number))
        except QueueFullError:
            return number
    return QUOTA + 1


@pytest.mark.parametrize("is_seen", [False, True])
async def test_a_job_inserted_before_and_during_a_count_is_counted_once(is_seen: bool) -> None:  # noqa: FBT001
    queue = CountedQueue()
    admission = make(queue)
    admission.admit("guest")
    with admission.inserting("guest"):
        queue.may_reply.clear()
        counting = asyncio.create_task(admission.count())
        await asyncio.sleep(0)
        queue.snapshot["guest"] = int(is_seen)
    queue.may_reply.set()
    await counting
    assert admission.queued == 1
    assert admitted(admission) == QUOTA - 1


@pytest.mark.parametrize("is_seen", [False, True])
async def test_a_job_admitted_during_a_count_is_counted_once(is_seen: bool) -> None:  # noqa: FBT001
    queue = CountedQueue()
    admission = make(queue)
    queue.may_reply.clear()
    counting = asyncio.create_task(admission.count())
    await asyncio.sleep(0)
    admission.admit("guest")
    with admission.inserting("guest"):
        queue.snapshot["guest"] = int(is_seen)
    queue.may_reply.set()
    await counting
    assert admitted(admission) == QUOTA - 1


async def test_the_next_count_settles_what_was_uncertain() -> None:
    queue = CountedQueue()
    admission = make(queue)
    admission.admit("guest")
    with admission.inserting("guest"):
        await admission.count()
    assert admission.queued == 1
    await admission.count()  # the job has left the queue meanwhile
    assert admission.queued == 0
    assert admitted(admission) == QUOTA


async def test_a_job_leased_at_once_takes_no_share_of_the_queue() -> None:
    admission = make(CountedQueue())
    admission.admit("guest")
    admission.skip_queue("guest")
    assert admission.queued == 0
    assert admitted(admission) == QUOTA


async def test_a_count_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> QueueState:
        raise InfrastructureError(ErrorKind.STORE_ERROR, "away")

    queue = CountedQueue()
    admission = make(queue)
    admission.admit("guest")
    with admission.inserting("guest"):
        pass
    monkeypatch.setattr(queue, "state", fail)
    await admission.count()
    assert admitted(admission) == QUOTA - 1
