"""Servers and workers on one database: they are stopped, killed and frozen, and jobs go on."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import text

from reward_server.store.engine import make_engine
from reward_server.store.postgres.embedded import embedded_postgres
from tests.conftest import (
    SANDBOX,
    descendants,
    is_alive,
    read_line,
    start_process,
    start_server,
    stop_server,
    wait_until,
)
from tests.support.job_client import LEAN, SLOTS, JobClient, item, nap, own_folder

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = {
    **LEAN,
    "REWARD_SERVER_SANDBOX__SLOTS": str(SLOTS),
    "REWARD_SERVER_JOBS__AHEAD": "0",
    "REWARD_SERVER_JOBS__DRAIN_SECONDS": "0",
    "REWARD_SERVER_JOBS__LEASE_SECONDS": "2",
}


class Cluster:
    """Processes over one data directory, of which a test may do away with any."""

    def __init__(self, data_dir: Path, folder: Path) -> None:
        self.data_dir = data_dir
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._servers: list[tuple[subprocess.Popen[bytes], JobClient]] = []
        self._workers: list[subprocess.Popen[bytes]] = []

    def serve(self, *options: str) -> tuple[subprocess.Popen[bytes], JobClient]:
        """Start a server; unless told otherwise it runs nothing itself."""
        log = self._folder / f"server-{len(self._started)}"
        process, url = start_server(
            self.data_dir, log, SETTINGS, SANDBOX, *options or ["--no-work"]
        )
        self._started.append(process)
        self._servers.append((process, JobClient(url, "", process.pid)))
        return self._servers[-1]

    def work(self, **settings: str) -> subprocess.Popen[bytes]:
        log = self._folder / f"worker-{len(self._started)}"
        words = ["work", "--data-dir", str(self.data_dir)]
        process = start_process(words, log, {**SANDBOX, **SETTINGS, **settings})
        self._started.append(process)
        wait_until(lambda: b"is ready" in log.read_bytes() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        return process

    def server(self) -> tuple[subprocess.Popen[bytes], JobClient]:
        """Return a server that lives."""
        living = [(process, desk) for process, desk in self._servers if process.poll() is None]
        return living[0] if living else self.serve()

    def workers(self, count: int) -> list[subprocess.Popen[bytes]]:
        """Have exactly so many workers."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        self._workers += [self.work() for _ in range(count - len(self._workers))]
        while len(self._workers) > count:
            stop_server(self._workers.pop())
        return self._workers

    def holder(self, mark: str) -> subprocess.Popen[bytes]:
        """Return the worker that runs the program that naps for so long, once it does."""
        wait_until(lambda: any(runs(worker, mark) for worker in self._workers))
        return next(worker for worker in self._workers if runs(worker, mark))

    def stop(self) -> None:
        for _, desk in self._servers:
            desk.http.close()
        for process in reversed(self._started):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                stop_server(process)


@pytest.fixture(scope="module")
def cluster(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with own_folder(data_dir) as folder:
        made = Cluster(folder, tmp_path_factory.mktemp("cluster"))
        try:
            yield made
        finally:
            made.stop()


def kill(process: subprocess.Popen[bytes]) -> list[int]:
    """Kill a process and return those it had started."""
    family = descendants(process.pid)
    process.kill()
    process.wait()
    return family


def runs(process: subprocess.Popen[bytes], mark: str) -> bool:
    return any(mark.encode() in read_line(pid) for pid in descendants(process.pid))


def stored(data_dir: Path, question: str, **parameters: object) -> Any:  # noqa: ANN401
    """Ask the database itself."""
    return execute(data_dir, question, **parameters)


def execute(data_dir: Path, *statements: str, **parameters: object) -> Any:  # noqa: ANN401
    """Have the database do something, and return the last that it says."""

    async def ask(url: str) -> Any:  # noqa: ANN401
        engine = make_engine(url, pool_size=1)
        try:
            async with engine.connect() as connection:
                for statement in statements:
                    said = await connection.execute(text(statement), parameters)
                return said.scalar_one()
        finally:
            await engine.dispose()

    with embedded_postgres(data_dir) as url, asyncio.Runner() as runner:
        return runner.run(ask(url))


def faults(cluster: Cluster, job_id: str) -> int:
    question = "SELECT faults FROM jobs WHERE id = CAST(CAST(:id AS text) AS uuid)"
    count: int = stored(cluster.data_dir, question, id=job_id)
    return count


@contextmanager
def paused(process: subprocess.Popen[bytes]) -> Iterator[None]:
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def look(desk: JobClient, batch_id: str, seconds: float) -> dict[str, Any]:
    answer: dict[str, Any] = desk.http.get(
        f"/v1/batches/{batch_id}", params={"wait_seconds": seconds}
    ).json()
    return answer


def test_a_server_that_runs_nothing_leaves_it_to_workers(cluster: Cluster) -> None:
    _, desk = cluster.server()
    job_id = desk.submit("print(1)")
    assert desk.get(job_id, 0.5).json()["status"] == "queued"
    cluster.workers(1)
    assert desk.answer(job_id)["stdout_tail"] == "1\n"


def test_a_job_is_cancelled_wherever_it_runs(cluster: Cluster) -> None:
    _, desk = cluster.server()
    cluster.workers(1)
    job_id = desk.submit(nap("66.5"))
    worker = cluster.holder("66.5")
    assert desk.cancel(job_id) == "cancelled"
    wait_until(lambda: not runs(worker, "66.5"), 30)
    assert desk.answer(desk.submit("print(1)"))["attempt"] == 1


def test_a_worker_that_is_stopped_hands_over_what_it_has(cluster: Cluster) -> None:
    _, desk = cluster.server()
    cluster.workers(2)
    job_id = desk.submit(nap("4.345"))
    first = cluster.holder("4.345")
    family = descendants(first.pid)
    first.send_signal(signal.SIGTERM)
    assert first.wait(10) == 0
    assert [pid for pid in family if is_alive(pid)] == []
    answer = desk.answer(job_id)
    assert (answer["attempt"], answer["stdout_tail"]) == (2, "through\n")
    assert answer["timings"]["total"] < 20
    assert faults(cluster, job_id) == 0


def test_jobs_of_a_killed_worker_are_run_by_another(cluster: Cluster) -> None:
    _, desk = cluster.server()
    cluster.workers(2)
    job_id = desk.submit(nap("4.567"), run_id="killed")
    family = kill(cluster.holder("4.567"))
    wait_until(lambda: not any(map(is_alive, family)), 30)
    answer = desk.answer(job_id)
    assert (answer["attempt"], answer["stdout_tail"]) == (2, "through\n")
    assert faults(cluster, job_id) == 1
    assert [line["job_id"] for line in desk.solutions("killed")] == [job_id]


def test_a_worker_that_was_frozen_beyond_its_lease_adds_no_second_result(
    cluster: Cluster,
) -> None:
    _, desk = cluster.server()
    one, two = cluster.workers(2)
    job_id = desk.submit(nap("6.456"), run_id="frozen")
    frozen = cluster.holder("6.456")
    other = two if frozen is one else one
    with paused(frozen):
        wait_until(lambda: runs(other, "6.456"), 30)
        wait_until(lambda: not runs(frozen, "6.456"), 30)
    answer = desk.answer(job_id)
    assert answer["attempt"] == 2
    (line,) = desk.solutions("frozen")
    assert line["solution_id"] == answer["solution_id"]
    after = [desk.submit(nap(0.2)) for _ in range(4 * SLOTS)]
    assert {desk.answer(one)["attempt"] for one in after} == {1}
    assert frozen.poll() is None


def test_jobs_go_on_while_the_server_is_killed_and_are_found_again(cluster: Cluster) -> None:
    server, desk = cluster.server()
    cluster.workers(1)
    body = item(nap("2.678"), idempotency_key=str(uuid.uuid4()))
    with (
        httpx.Client(base_url=desk.http.base_url, timeout=0.5) as impatient,
        pytest.raises(httpx.TimeoutException),
    ):
        impatient.post("/score", json=body)
    cluster.holder("2.678")
    kill(server)
    _, other = cluster.server()
    answer = other.http.post("/score", json=body).json()
    assert (answer["attempt"], answer["stdout_tail"]) == (1, "through\n")


def test_two_servers_and_two_workers_lose_one_each_in_the_middle_of_a_batch(
    cluster: Cluster,
) -> None:
    _, other = cluster.server()
    first, desk = cluster.serve()
    victim, _ = cluster.workers(2)
    items = [item(f"import time\ntime.sleep(0.5)\nprint({n})\n") for n in range(16)]
    sent = desk.http.post("/v1/batches", json={"items": items}).json()
    wait_until(lambda: len(look(other, sent["batch_id"], 0)["results"]) >= 4)
    kill(first)
    kill(victim)
    batch = look(other, sent["batch_id"], 60)
    assert batch["complete"]
    assert batch["errors"] == []
    told = {one["index"]: one["stdout_tail"] for one in batch["results"]}
    assert told == {n: f"{n}\n" for n in range(16)}
    assert {one["job_id"] for one in batch["results"]} == set(sent["job_ids"])


def test_a_worker_that_is_stopped_ends_what_it_can_in_time(cluster: Cluster) -> None:
    _, desk = cluster.server()
    cluster.workers(0)
    worker = cluster.work(REWARD_SERVER_JOBS__DRAIN_SECONDS="30")
    job_id = desk.submit(nap("1.345"))
    wait_until(lambda: runs(worker, "1.345"))
    worker.send_signal(signal.SIGTERM)
    late = desk.submit("print(1)")
    assert worker.wait(20) == 0
    assert desk.answer(job_id)["attempt"] == 1
    assert desk.get(late, 0).json()["status"] == "queued"


def test_a_dead_worker_of_this_machine_is_noticed_long_before_its_lease_ends(
    cluster: Cluster,
) -> None:
    _, desk = cluster.server()
    cluster.workers(0)
    victim = cluster.work(REWARD_SERVER_JOBS__LEASE_SECONDS="600")
    job_id = desk.submit(nap("4.789"))
    wait_until(lambda: runs(victim, "4.789"))
    kill(victim)
    wait_until(lambda: desk.get(job_id, 0).json()["status"] == "queued", 30)
    cluster.workers(1)
    assert desk.answer(job_id)["attempt"] == 2


def test_a_server_that_works_is_stopped_and_hands_over(cluster: Cluster) -> None:
    _, desk = cluster.server()
    cluster.workers(0)
    server, own = cluster.serve("--work")
    job_id = own.submit(nap("4.456"))
    wait_until(lambda: runs(server, "4.456"))
    server.send_signal(signal.SIGTERM)
    server.wait(30)
    assert desk.get(job_id, 0).json()["status"] == "queued"
    cluster.workers(1)
    assert desk.answer(job_id)["attempt"] == 2
    assert faults(cluster, job_id) == 0


def test_a_process_that_was_frozen_as_a_whole_goes_on_where_it_was(
    own_dir: Path, tmp_path: Path
) -> None:
    settings = {**SETTINGS, "REWARD_SERVER_JOBS__LEASE_SECONDS": "5"}
    process, url = start_server(own_dir, tmp_path / "log", settings)
    try:
        with JobClient(url, "", process.pid) as desk:
            job_id = desk.submit(nap("8.567"))
            desk.wait_for_program("8.567")
            with paused(process):
                time.sleep(6)
            assert desk.answer(job_id)["attempt"] == 1
    finally:
        stop_server(process)


def test_jobs_go_on_when_the_embedded_database_is_killed(cluster: Cluster) -> None:
    _, desk = cluster.server()
    cluster.workers(1)
    job_id = desk.submit(nap("2.456"), run_id="reborn")
    cluster.holder("2.456")
    file = cluster.data_dir / "postgres" / "data" / "postmaster.pid"
    postmaster = int(file.read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    wait_until(lambda: desk.http.get("/readyz").status_code == 200 and read_pid(file) != postmaster)
    assert desk.answer(job_id)["stdout_tail"] == "through\n"
    assert [line["job_id"] for line in desk.solutions("reborn")] == [job_id]
    assert desk.answer(desk.submit("print(1)"))["stdout_tail"] == "1\n"


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
    """Return what makes a process begin with a change of its own."""
    (folder / "sitecustomize.py").write_text(change)
    return {"PYTHONPATH": str(folder)}


def test_a_worker_that_dies_between_grading_and_writing_costs_one_attempt(
    cluster: Cluster, tmp_path: Path
) -> None:
    _, desk = cluster.server()
    cluster.workers(0)
    victim = cluster.work(**changed(tmp_path, DIES_BEFORE_IT_WRITES))
    job_id = desk.submit("print(1)", run_id="graded")
    assert victim.wait(60) == -signal.SIGKILL
    cluster.workers(1)
    assert desk.answer(job_id)["attempt"] == 2
    assert [line["job_id"] for line in desk.solutions("graded")] == [job_id]


@pytest.mark.parametrize("shift", [-3600, 3600])
def test_the_clock_of_a_worker_matters_to_nobody(
    cluster: Cluster, tmp_path: Path, shift: int
) -> None:
    _, desk = cluster.server()
    cluster.workers(0)
    change = LIVES_AT_ANOTHER_TIME.format(shift=shift)
    worker = cluster.work(REWARD_SERVER_JOBS__LEASE_SECONDS="60", **changed(tmp_path, change))
    answer = desk.answer(desk.submit(nap("3.1")))
    stop_server(worker)
    assert (answer["attempt"], answer["stdout_tail"]) == (1, "through\n")
    assert 3.1 <= answer["duration_seconds"] < 600
    assert all(0 <= seconds < 600 for seconds in answer["timings"].values())


@contextmanager
def read_only(data_dir: Path) -> Iterator[None]:
    """Have the database refuse to write."""
    asks = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    asks += " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    change = "ALTER DATABASE postgres SET default_transaction_read_only = {}"
    execute(data_dir, change.format("on"), asks)
    try:
        yield
    finally:
        execute(data_dir, "SET default_transaction_read_only = off", change.format("off"), asks)


def test_nothing_is_accepted_that_cannot_be_written_down(cluster: Cluster) -> None:
    process, desk = cluster.server()
    cluster.workers(1)
    with read_only(cluster.data_dir):
        refused = desk.post("print(1)", run_id="refused")
        assert refused.status_code == 503
        assert refused.json()["kind"] == "store_error"
        assert int(refused.headers["retry-after"]) > 0
        assert desk.http.get("/livez").status_code == 200
    wait_until(lambda: desk.post("print(1)", run_id="taken").status_code == 202)
    assert process.poll() is None
    question = "SELECT count(*) FROM jobs WHERE run_id = CAST(:run AS text)"
    assert stored(cluster.data_dir, question, run="refused") == 0
