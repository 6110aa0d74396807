"""Servers and workers on one database are stopped, killed and frozen, and no job is lost."""

from __future__ import annotations

import os
import signal
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.conftest import (
    descendants,
    is_alive,
    start_server,
    stop_server,
    wait_until,
)
from tests.support.cluster import SETTINGS, Cluster, execute, faults, kill, paused, runs, stored
from tests.support.job_client import SLOTS, JobClient, item, nap, own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def cluster(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with own_folder(data_dir) as folder:
        made = Cluster(folder, tmp_path_factory.mktemp("cluster"))
        try:
            yield made
        finally:
            made.stop()


def look(client: JobClient, batch_id: str, seconds: float) -> dict[str, Any]:
    answer: dict[str, Any] = client.http.get(
        f"/v1/batches/{batch_id}", params={"wait_seconds": seconds}
    ).json()
    return answer


def test_a_server_without_a_worker_leaves_jobs_to_workers(cluster: Cluster) -> None:
    _, client = cluster.server()
    job_id = client.submit("print(1)")
    assert client.get(job_id, 0.5).json()["status"] == "queued"
    cluster.workers(1)
    assert client.answer(job_id)["stdout_tail"] == "1\n"


def test_a_job_is_cancelled_in_whichever_process_it_runs(cluster: Cluster) -> None:
    _, client = cluster.server()
    cluster.workers(1)
    job_id = client.submit(nap("66.5"))
    worker = cluster.holder("66.5")
    assert client.cancel(job_id) == "cancelled"
    wait_until(lambda: not runs(worker, "66.5"), 30)
    assert client.answer(client.submit("print(1)"))["attempt"] == 1


def test_a_stopped_worker_hands_its_jobs_over(cluster: Cluster) -> None:
    _, client = cluster.server()
    cluster.workers(2)
    job_id = client.submit(nap("4.345"))
    first = cluster.holder("4.345")
    family = descendants(first.pid)
    first.send_signal(signal.SIGTERM)
    assert first.wait(10) == 0
    assert [pid for pid in family if is_alive(pid)] == []
    answer = client.answer(job_id)
    assert (answer["attempt"], answer["stdout_tail"]) == (2, "through\n")
    assert answer["timings"]["total"] < 20
    assert faults(cluster, job_id) == 0


def test_another_worker_runs_the_jobs_of_a_killed_one(cluster: Cluster) -> None:
    _, client = cluster.server()
    cluster.workers(2)
    job_id = client.submit(nap("4.567"), run_id="killed")
    family = kill(cluster.holder("4.567"))
    wait_until(lambda: not any(map(is_alive, family)), 30)
    answer = client.answer(job_id)
    assert (answer["attempt"], answer["stdout_tail"]) == (2, "through\n")
    assert faults(cluster, job_id) == 1
    assert [line["job_id"] for line in client.solutions("killed")] == [job_id]


def test_a_worker_frozen_past_its_lease_adds_no_second_result(
    cluster: Cluster,
) -> None:
    _, client = cluster.server()
    one, two = cluster.workers(2)
    job_id = client.submit(nap("6.456"), run_id="frozen")
    frozen = cluster.holder("6.456")
    other = two if frozen is one else one
    with paused(frozen):
        wait_until(lambda: runs(other, "6.456"), 30)
        wait_until(lambda: not runs(frozen, "6.456"), 30)
    answer = client.answer(job_id)
    assert answer["attempt"] == 2
    (line,) = client.solutions("frozen")
    assert line["solution_id"] == answer["solution_id"]
    after = [client.submit(nap(0.2)) for _ in range(4 * SLOTS)]
    assert {client.answer(one)["attempt"] for one in after} == {1}
    assert frozen.poll() is None


def test_jobs_survive_the_death_of_the_server(cluster: Cluster) -> None:
    server, client = cluster.server()
    cluster.workers(1)
    body = item(nap("2.678"), idempotency_key=str(uuid.uuid4()))
    with (
        httpx.Client(base_url=client.http.base_url, timeout=0.5) as impatient,
        pytest.raises(httpx.TimeoutException),
    ):
        impatient.post("/score", json=body)
    cluster.holder("2.678")
    kill(server)
    _, other = cluster.server()
    answer = other.http.post("/score", json=body).json()
    assert (answer["attempt"], answer["stdout_tail"]) == (1, "through\n")


def test_a_batch_survives_the_death_of_a_server_and_a_worker(
    cluster: Cluster,
) -> None:
    _, other = cluster.server()
    first, client = cluster.serve()
    victim, _ = cluster.workers(2)
    items = [item(f"import time\ntime.sleep(0.5)\nprint({n})\n") for n in range(16)]
    sent = client.http.post("/v1/batches", json={"items": items}).json()
    wait_until(lambda: len(look(other, sent["batch_id"], 0)["results"]) >= 4)
    kill(first)
    kill(victim)
    batch = look(other, sent["batch_id"], 60)
    assert batch["complete"]
    assert batch["errors"] == []
    outputs = {one["index"]: one["stdout_tail"] for one in batch["results"]}
    assert outputs == {n: f"{n}\n" for n in range(16)}
    assert {one["job_id"] for one in batch["results"]} == set(sent["job_ids"])


def test_a_draining_worker_finishes_what_it_can_in_time(cluster: Cluster) -> None:
    _, client = cluster.server()
    cluster.workers(0)
    worker = cluster.work(REWARD_SERVER_JOBS__DRAIN_SECONDS="30")
    job_id = client.submit(nap("1.345"))
    wait_until(lambda: runs(worker, "1.345"))
    worker.send_signal(signal.SIGTERM)
    late = client.submit("print(1)")
    assert worker.wait(20) == 0
    assert client.answer(job_id)["attempt"] == 1
    assert client.get(late, 0).json()["status"] == "queued"


def test_a_dead_local_worker_is_noticed_before_its_lease_expires(
    cluster: Cluster,
) -> None:
    _, client = cluster.server()
    cluster.workers(0)
    victim = cluster.work(REWARD_SERVER_JOBS__LEASE_SECONDS="600")
    job_id = client.submit(nap("4.789"))
    wait_until(lambda: runs(victim, "4.789"))
    kill(victim)
    wait_until(lambda: client.get(job_id, 0).json()["status"] == "queued", 30)
    cluster.workers(1)
    assert client.answer(job_id)["attempt"] == 2


def test_a_stopped_server_hands_its_jobs_over(cluster: Cluster) -> None:
    _, client = cluster.server()
    cluster.workers(0)
    server, own = cluster.serve("--work")
    job_id = own.submit(nap("4.456"))
    wait_until(lambda: runs(server, "4.456"))
    server.send_signal(signal.SIGTERM)
    server.wait(30)
    assert client.get(job_id, 0).json()["status"] == "queued"
    cluster.workers(1)
    assert client.answer(job_id)["attempt"] == 2
    assert faults(cluster, job_id) == 0


def test_a_process_frozen_as_a_whole_keeps_its_jobs(own_dir: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, "REWARD_SERVER_JOBS__LEASE_SECONDS": "5"}
    process, url = start_server(own_dir, tmp_path / "log", settings)
    try:
        with JobClient(url, "", process.pid) as client:
            job_id = client.submit(nap("8.567"))
            client.wait_for_program("8.567")
            with paused(process):
                time.sleep(6)
            assert client.answer(job_id)["attempt"] == 1
    finally:
        stop_server(process)


def test_jobs_survive_the_death_of_the_embedded_database(cluster: Cluster) -> None:
    _, client = cluster.server()
    cluster.workers(1)
    job_id = client.submit(nap("2.456"), run_id="reborn")
    cluster.holder("2.456")
    file = cluster.data_dir / "postgres" / "data" / "postmaster.pid"
    postmaster = int(file.read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    wait_until(
        lambda: client.http.get("/readyz").status_code == 200 and read_pid(file) != postmaster
    )
    assert client.answer(job_id)["stdout_tail"] == "through\n"
    assert [line["job_id"] for line in client.solutions("reborn")] == [job_id]
    assert client.answer(client.submit("print(1)"))["stdout_tail"] == "1\n"


def read_pid(file: Path) -> int | None:
    try:
        return int(file.read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return None


DIES_BEFORE_IT_WRITES = """
import os
from reward_server.store.queries import Store
async def record(*_): os.kill(os.getpid(), 9)
Store.record = record
"""
LIVES_AT_ANOTHER_TIME = """
import time
now, now_ns = time.time, time.time_ns
time.time = lambda: now() + {shift}
time.time_ns = lambda: now_ns() + {shift} * 10**9
"""


def changed(folder: Path, change: str) -> dict[str, str]:
    """Return the environment of a process that applies a change when it starts."""
    (folder / "sitecustomize.py").write_text(change)
    return {"PYTHONPATH": str(folder)}


def test_a_death_between_grading_and_storing_costs_one_attempt(
    cluster: Cluster, tmp_path: Path
) -> None:
    _, client = cluster.server()
    cluster.workers(0)
    victim = cluster.work(**changed(tmp_path, DIES_BEFORE_IT_WRITES))
    job_id = client.submit("print(1)", run_id="graded")
    assert victim.wait(60) == -signal.SIGKILL
    cluster.workers(1)
    assert client.answer(job_id)["attempt"] == 2
    assert [line["job_id"] for line in client.solutions("graded")] == [job_id]


@pytest.mark.parametrize("shift", [-3600, 3600])
def test_a_wrong_clock_of_a_worker_changes_nothing(
    cluster: Cluster, tmp_path: Path, shift: int
) -> None:
    _, client = cluster.server()
    cluster.workers(0)
    change = LIVES_AT_ANOTHER_TIME.format(shift=shift)
    worker = cluster.work(REWARD_SERVER_JOBS__LEASE_SECONDS="60", **changed(tmp_path, change))
    answer = client.answer(client.submit(nap("3.1")))
    stop_server(worker)
    assert (answer["attempt"], answer["stdout_tail"]) == (1, "through\n")
    assert 3.1 <= answer["duration_seconds"] < 600
    assert all(0 <= seconds < 600 for seconds in answer["timings"].values())


@contextmanager
def read_only(data_dir: Path) -> Iterator[None]:
    """Make the database read-only."""
    asks = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    asks += " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    change = "ALTER DATABASE postgres SET default_transaction_read_only = {}"
    execute(data_dir, change.format("on"), asks)
    try:
        yield
    finally:
        execute(data_dir, "SET default_transaction_read_only = off", change.format("off"), asks)


def test_no_job_is_accepted_that_cannot_be_stored(cluster: Cluster) -> None:
    process, client = cluster.server()
    cluster.workers(1)
    with read_only(cluster.data_dir):
        refused = client.post("print(1)", run_id="refused")
        assert refused.status_code == 503
        assert refused.json()["kind"] == "store_error"
        assert int(refused.headers["retry-after"]) > 0
        assert client.http.get("/livez").status_code == 200
    wait_until(lambda: client.post("print(1)", run_id="taken").status_code == 202)
    assert process.poll() is None
    question = "SELECT count(*) FROM jobs WHERE run_id = CAST(:run AS text)"
    assert stored(cluster.data_dir, question, run="refused") == 0
