"""The client for trainers that are not asynchronous: threads, forks, interruptions, the end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, wait_until
from tests.support.job_client import KEYS, TASK, JobClient, nap
from tests.support.relays import TcpRelay
from trainer_client import (
    DeadlineExceededError,
    JobCancelledError,
    RequestRefusedError,
    RewardClient,
    Submission,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BROKEN = "("


def test_many_threads_share_a_client_and_its_connections(url: str, run_id: str) -> None:
    with TcpRelay(url) as relay, RewardClient(relay.url, KEYS["team"]) as client:

        def score(_: int) -> str:
            return client.score(TASK, code=BROKEN, run_id=run_id).solution_id

        with ThreadPoolExecutor(64) as pool:
            found = set(pool.map(score, range(128)))
        assert len(found) == 128
        assert relay.most_open <= 13


def test_the_same_surface_without_await(plain: RewardClient, job_client: JobClient) -> None:
    assert plain.ready()
    job = plain.submit(TASK, code=nap(0.3))
    assert plain.wait(job).job_id == job.job_id
    (result,) = plain.as_completed([job.job_id])
    assert result.answer is not None
    assert result.answer.raw == job_client.answer(job.job_id)
    assert plain.cancel(job) == "failed"
    assert plain.get("/v1/solutions", limit=1, run_id=None)["solutions"]
    with pytest.raises(RequestRefusedError):
        plain.get("/v1/nothing")


def test_a_batch_yields_results_as_they_complete(
    plain: RewardClient, job_client: JobClient
) -> None:
    items = [Submission(TASK, code=code) for code in (nap("71.5"), BROKEN, "print(1)")]
    results = list(plain.score_many(items, min_complete=2, rest="cancel"))
    assert {one.index for one in results} == {1, 2}
    wait_until(lambda: not job_client.runs("71.5"))


def test_a_batch_that_is_left_early_leaves_nothing_behind(
    plain: RewardClient, job_client: JobClient
) -> None:
    items = [Submission(TASK, code=code) for code in (nap("72.5"), BROKEN)]
    for result in plain.score_many(items, rest="cancel"):
        assert result.index == 1
        break
    wait_until(lambda: not job_client.runs("72.5"))


def test_errors_come_through(plain: RewardClient) -> None:
    with pytest.raises(DeadlineExceededError) as caught:
        plain.score(TASK, code=nap("73.5"), deadline_seconds=1)
    assert caught.value.job_id is not None
    assert plain.cancel(caught.value.job_id) == "cancelled"
    with pytest.raises(JobCancelledError):
        plain.wait(caught.value.job_id)


def test_closing_ends_the_waiting_of_other_threads(
    url: str, job_client: JobClient, run_id: str
) -> None:
    client, caught = RewardClient(url, KEYS["team"]), []

    def score() -> None:
        with pytest.raises(RuntimeError, match="closed") as error:
            client.score(TASK, code=nap("74.5"), idempotency_key=run_id)
        caught.append(error)

    thread = threading.Thread(target=score)
    thread.start()
    job_client.wait_for_program("74.5")
    client.close()
    thread.join(60)
    assert len(caught) == 1
    with pytest.raises(RuntimeError, match="closed"):
        client.ready()
    client.close()
    assert job_client.cancel(job_client.submit(nap("74.5"), idempotency_key=run_id)) == "cancelled"


def test_steps_and_prompts_are_asked_for_without_await(plain: RewardClient, run_id: str) -> None:
    assert plain.cancel_run(run_id, up_to_step=7, deadline_seconds=60) == 0
    found = plain.prompts(TASK, run_id=run_id, improve_fraction=0, deadline_seconds=60)
    assert [one["kind"] for one in found["prompts"]] == ["scratch"]
    with pytest.raises(DeadlineExceededError):
        plain.prompts(TASK, deadline_seconds=1e-9)


def test_a_forked_process_scores_with_a_thread_of_its_own(plain: RewardClient) -> None:
    before = plain.score(TASK, code=BROKEN)
    assert in_a_fork(lambda: plain.score(TASK, code=BROKEN).solution_id != before.solution_id)
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(plain.score, TASK, code=nap(1))
        assert in_a_fork(lambda: plain.score(TASK, code=BROKEN).status == "failed")
        assert under_way.result(60).stdout_tail == "through\n"
    assert plain.ready()


def in_a_fork(holds: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            status = 0 if holds() else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "ending",
    ["threading.Thread(target=wait, daemon=True).start()", "raise SystemExit(0)", "del client"],
)
def test_an_open_client_does_not_block_interpreter_exit(url: str, ending: str) -> None:
    lines = [
        "import contextlib, threading",
        "from trainer_client import RewardClient",
        f"client = RewardClient({url!r}, {KEYS['team']!r})",
        f"client.submit({TASK!r}, code='(')",
        "def wait():",
        f"    with contextlib.suppress(RuntimeError): client.score({TASK!r}, code={nap(0.5)!r})",
        ending,
    ]
    command = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_garbage_collection_closes_a_client_without_waiting(url: str) -> None:
    """Whoever collects garbage may hold what the closing needs."""
    client = RewardClient(url, KEYS["team"])
    assert client.ready()
    there = client._background
    assert there is not None
    with held() as lock:
        there._loop.call_soon_threadsafe(lock.acquire)
        del client
        gc.collect()
        assert there._thread.is_alive()
    wait_until(lambda: not there._thread.is_alive())


@contextmanager
def held() -> Iterator[threading.Lock]:
    lock = threading.Lock()
    lock.acquire()
    try:
        yield lock
    finally:
        lock.release()


def test_an_interruption_ends_the_waiting(url: str, job_client: JobClient) -> None:
    lines = [
        "import signal",  # in the background of a shell interruptions are ignored
        "signal.signal(signal.SIGINT, signal.default_int_handler)",
        "from trainer_client import RewardClient",
        f"with RewardClient({url!r}, {KEYS['team']!r}, cancel_on_abandon=True) as client:",
        f"    client.score({TASK!r}, code={nap('75.5')!r})",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    job_client.wait_for_program("75.5")
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert shown.rstrip().endswith("KeyboardInterrupt")
    wait_until(lambda: not job_client.runs("75.5"))
