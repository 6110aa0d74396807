"""A full queue refuses jobs, and says when it will have room."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
import pytest_asyncio

from reward_server.errors import QueueFullError, RequestError
from reward_server.jobs.admission import Admission
from reward_server.jobs.notifier import CompletionNotifier
from reward_server.jobs.throughput import Throughput
from reward_server.model import ErrorKind
from reward_server.store.queue import Queue
from reward_server.store.values import NewJob
from tests.integration.store.examples import SUBMISSION

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from reward_server.store.queries import Store

LIMIT, QUOTA = 8, 2


@pytest_asyncio.fixture
async def full(engine: AsyncEngine, store: Store) -> Admission:
    """Give a queue that is full and from which ten jobs a second go."""
    for number in range(LIMIT):
        client = "guest" if number < QUOTA else ""
        await store.accept(NewJob(SUBMISSION, "digest", client=client))
    queue = Queue(engine)
    admission = Admission(queue, CompletionNotifier(queue), LIMIT, {"guest": QUOTA})
    await admission.count()
    admission._throughput = Throughput()
    admission._throughput.record(0, has_waiting=True, now=0)
    admission._throughput.record(100, has_waiting=True, now=10)
    return admission


def refused(admission: Admission, client: str, count: int, ticket: str | None = None) -> int:
    with pytest.raises(QueueFullError) as caught:
        admission.admit(client, count, ticket or str(uuid4()))
    return caught.value.retry_seconds


def notify_ends(admission: Admission, ends: int) -> None:
    for _ in range(ends):
        admission._notifier.on_notification(uuid4())


def test_a_full_queue_has_room_after_enough_ends(full: Admission) -> None:
    assert refused(full, "", 1) == 1
    assert full.queued == LIMIT


def test_refused_requests_line_up_in_order(full: Admission) -> None:
    times = [refused(full, "", 5) for _ in range(20)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(20 * 5 / 10, abs=1)


def test_retrying_too_often_does_not_delay_everybody(full: Admission) -> None:
    times = [refused(full, "", 5) for _ in range(5_000)]
    assert max(times) <= 1_010 / 10


def test_a_client_with_its_share_full_waits_for_its_own_jobs(full: Admission) -> None:
    full._limit = 4 * LIMIT
    full.admit("", 1)
    seconds = 2 / (10 * QUOTA / (LIMIT + 1))
    assert seconds <= refused(full, "guest", 2) <= seconds + 2


def test_every_notified_end_makes_room_for_one_job(full: Admission) -> None:
    refused(full, "", 2, "one")
    notify_ends(full, 2)
    full.admit("", 2, "one")
    refused(full, "", 1)


def test_there_is_room_again_before_the_next_count(full: Admission) -> None:
    full._limit = LIMIT - 2
    notify_ends(full, 3)
    full.admit("", 1)
    refused(full, "", 1)


def test_a_reservation_holds_though_others_were_quicker(
    full: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = refused(full, "", 1, "patient")
    then = time.monotonic() + seconds
    notify_ends(full, 2)
    monkeypatch.setattr(time, "monotonic", lambda: then)
    full.admit("", 1, "one of many")
    assert refused(full, "", 1, "the next of many") >= 1
    full.admit("", 1, "patient")


def test_an_unused_reservation_expires(full: Admission, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = refused(full, "", 1, "gone")
    notify_ends(full, 1)
    then = time.monotonic() + seconds
    monkeypatch.setattr(time, "monotonic", lambda: then)
    refused(full, "", 1, "another")
    monkeypatch.setattr(time, "monotonic", lambda: then + 60)
    full.admit("", 1, "a third")


def test_retrying_too_early_delays_nobody(full: Admission) -> None:
    times = [refused(full, "", 5, "impatient") for _ in range(100)]
    assert max(times) <= 1
    assert refused(full, "", 5, "another") <= 2


@pytest.mark.parametrize(("client", "count"), [("", LIMIT + 1), ("guest", QUOTA + 1)])
def test_a_request_that_never_fits_gets_no_retry_time(
    full: Admission, client: str, count: int
) -> None:
    with pytest.raises(RequestError) as caught:
        full.admit(client, count)
    assert caught.value.kind is ErrorKind.TOO_LARGE


def test_unused_reservations_do_not_block_an_empty_queue(
    full: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(100):
        refused(full, "", 1)
    later = time.monotonic() + 9
    monkeypatch.setattr("reward_server.jobs.admission.time.monotonic", lambda: later)
    assert full._reservations.due_to_others("", later) > LIMIT
    notify_ends(full, LIMIT)
    for _ in range(LIMIT // 2):
        full.admit("", 1, str(uuid4()))
