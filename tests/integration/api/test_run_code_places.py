"""Ad hoc programs and jobs share the slots of one process, and neither starves the other."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.conftest import SANDBOX, SANDBOXES, descendants, read_line, start_server, stop_server
from tests.conftest import wait_until as wait
from tests.support.job_client import KEYS, LEAN, JobClient, nap, own_folder

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

SLOTS = "REWARD_SERVER_SANDBOX__SLOTS"
PATIENT = 200.0
TIMED = "import time\na = time.time()\ntime.sleep(0.3)\nprint(a, time.time())"


class RunCodeClient(JobClient):
    """A server, as a client that sends ad hoc programs sees it."""

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        super().__init__(url, "", process.pid)
        self.url = url
        self.process = process
        self.pool = ThreadPoolExecutor(32)

    def run(self, code: str, compile_timeout: float = PATIENT, **fields: object) -> httpx.Response:
        body = {"code": code, "language": "python", "compile_timeout": compile_timeout, **fields}
        return httpx.post(f"{self.url}/run_code", json=body, timeout=300)

    def send(self, code: str, **fields: Any) -> Future[httpx.Response]:  # noqa: ANN401
        return self.pool.submit(self.run, code, **fields)

    def send_and_leave(self, code: str, seconds: float) -> None:
        body = {"code": code, "language": "python", "run_timeout": 300, "compile_timeout": PATIENT}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{self.url}/run_code", json=body, timeout=seconds)

    def gauge(self, name: str) -> float:
        lines = self.http.get("/metrics").text.splitlines()
        return next(float(one.split()[1]) for one in lines if one.startswith(f"{name} "))

    def wait_for(self, name: str, value: float) -> None:
        wait(lambda: self.gauge(name) == value)


@contextmanager
def serving(
    folder: Path, log: Path, settings: dict[str, str], *options: str
) -> Iterator[RunCodeClient]:
    process, url = start_server(folder, log, {**LEAN, **settings}, SANDBOX, *options)
    try:
        with RunCodeClient(url, process) as runs:
            yield runs
            runs.pool.shutdown(wait=False, cancel_futures=True)
    finally:
        stop_server(process)


@pytest.fixture(scope="module")
def one_slot(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunCodeClient]:
    """A server with one slot, for all tests that leave it idle."""
    log = tmp_path_factory.mktemp("one-slot") / "log"
    with own_folder(data_dir) as folder, serving(folder, log, {SLOTS: "1"}) as runs:
        yield runs


def intervals(text: str) -> tuple[float, float]:
    begun, ended = text.split()
    return float(begun), float(ended)


def most_at_once(spans: list[tuple[float, float]]) -> int:
    return max(sum(a <= begun < b for a, b in spans) for begun, _ in spans)


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("ahead", [0, 2])
def test_jobs_and_programs_together_never_exceed_the_slots(
    own_dir: Path, tmp_path: Path, slots: int, ahead: int
) -> None:
    settings = {SLOTS: str(slots), "REWARD_SERVER_JOBS__AHEAD": str(ahead)}
    with serving(own_dir, tmp_path / "log", settings) as runs:
        jobs, sent = [], []
        for n in range(6):
            jobs.append(runs.submit(f"{TIMED}\n# {n}"))
            sent += [runs.send(TIMED), runs.send(TIMED)]
        answers = [one.result(timeout=240).json() for one in sent]
        assert [answer["status"] for answer in answers] == ["Success"] * len(sent)
        spans = [intervals(answer["run_result"]["stdout"]) for answer in answers]
        spans += [intervals(runs.answer(job_id)["stdout_tail"]) for job_id in jobs]
        assert most_at_once(spans) == slots
        runs.wait_for("reward_slots_busy", 0)


def test_a_flood_of_programs_leaves_half_of_the_slots_to_jobs(
    own_dir: Path, tmp_path: Path
) -> None:
    with serving(own_dir, tmp_path / "log", {SLOTS: "2"}) as runs:
        sent = [runs.send("import time\ntime.sleep(0.5)\nprint(time.time())") for _ in range(24)]
        runs.wait_for("reward_run_code_running", 2)
        jobs = [runs.submit(f"import time\nprint(time.time())\n# {n}") for n in range(6)]
        begun = [float(runs.answer(job_id)["stdout_tail"]) for job_id in jobs]
        ended = [float(one.result(240).json()["run_result"]["stdout"]) for one in sent]
        assert max(begun) < max(ended), "jobs did not wait for the flood to end"


def test_a_program_without_a_slot_in_time_does_not_run(one_slot: RunCodeClient) -> None:
    runs = one_slot
    job_id = runs.submit(nap("301.5"))
    runs.wait_for_program("301.5")
    refused = runs.run(nap("302.5"), compile_timeout=0)
    assert refused.status_code == 504
    assert refused.headers["content-type"] == "application/problem+json"
    assert (refused.json()["kind"], refused.json()["retryable"]) == ("overloaded", True)
    assert not runs.runs("302.5")
    patient = runs.send("print('at last')")
    runs.wait_for("reward_run_code_running", 1)
    runs.cancel(job_id)
    assert patient.result(timeout=60).json()["run_result"]["stdout"] == "at last\n"


def test_waiting_does_not_count_against_the_run_time(one_slot: RunCodeClient) -> None:
    runs = one_slot
    sent = [runs.send("import time\ntime.sleep(3)", run_timeout=12) for _ in range(6)]
    results = [one.result(timeout=240).json()["run_result"] for one in sent]
    assert {result["status"] for result in results} == {"Finished"}
    assert sum(result["execution_time"] for result in results) > 12


def test_programs_above_the_waiting_limit_are_refused(own_dir: Path, tmp_path: Path) -> None:
    settings = {
        SLOTS: "1",
        "REWARD_SERVER_RUN_CODE__WAITING": "1",
        "REWARD_SERVER_LIMITS__DISK_BYTES": str(1 << 20),
        "REWARD_SERVER_RUN_CODE__WALL_SECONDS": "50",
    }
    with serving(own_dir, tmp_path / "log", settings) as runs:
        job_id = runs.submit(nap("303.5"))
        runs.wait_for_program("303.5")
        first = runs.send("print(1)")
        runs.wait_for("reward_run_code_running", 1)
        second = runs.send("print(2)")
        runs.wait_for("reward_run_code_waiting", 1)
        refused = runs.run("print(3)")
        assert (refused.status_code, refused.json()["kind"]) == (429, "overloaded")
        assert int(refused.headers["retry-after"]) >= 1
        runs.cancel(job_id)
        assert [one.result(60).json()["run_result"]["stdout"] for one in (first, second)] == [
            "1\n",
            "2\n",
        ]
        too_large = runs.run("pass", stdin="x" * (1 << 19))
        assert (too_large.status_code, too_large.json()["kind"]) == (413, "too_large")
        assert "limit of 50" in runs.run("pass", run_timeout=51).json()["detail"]


def test_hanging_up_stops_the_program_and_frees_its_slot(one_slot: RunCodeClient) -> None:
    runs = one_slot
    gone = runs.pool.submit(runs.send_and_leave, nap("304.5"), 15)
    runs.wait_for_program("304.5")
    runs.send_and_leave(nap("305.5"), 2)  # it waits behind the other
    gone.result(timeout=60)
    wait(lambda: not runs.runs("304.5"))
    runs.wait_for("reward_slots_busy", 0)
    runs.wait_for("reward_run_code_waiting", 0)
    assert runs.run("print('free')", compile_timeout=0).json()["status"] == "Success"
    assert not runs.runs("305.5")


def test_a_server_without_a_worker_runs_no_programs(own_dir: Path, tmp_path: Path) -> None:
    with serving(own_dir, tmp_path / "log", {}, "--no-work") as runs:
        refused = runs.run("pass")
        assert (refused.status_code, refused.json()["retryable"]) == (503, True)
        assert "elsewhere" in refused.json()["detail"]


def test_a_draining_server_finishes_running_programs_only(own_dir: Path, tmp_path: Path) -> None:
    settings = {SLOTS: "1", "REWARD_SERVER_JOBS__DRAIN_SECONDS": "600"}
    with serving(own_dir, tmp_path / "log", settings) as runs:
        running = runs.send("import subprocess\nprint(subprocess.call(['sleep', '6.5']))")
        runs.wait_for_program("6.5")
        waiting = runs.send("print('never')")
        runs.wait_for("reward_run_code_waiting", 1)
        runs.process.send_signal(signal.SIGTERM)
        assert waiting.result(timeout=60).status_code == 503
        assert running.result(timeout=60).json()["run_result"]["stdout"] == "0\n"
        runs.process.wait(60)


def test_a_second_signal_stops_without_waiting_for_programs(own_dir: Path, tmp_path: Path) -> None:
    settings = {SLOTS: "1", "REWARD_SERVER_JOBS__DRAIN_SECONDS": "600"}
    with serving(own_dir, tmp_path / "log", settings) as runs:
        runs.send(nap("306.5"), run_timeout=400)
        runs.wait_for_program("306.5")
        runs.process.send_signal(signal.SIGTERM)
        wait(lambda: runs.http.get("/readyz").status_code == 503)
        runs.process.send_signal(signal.SIGTERM)
        runs.process.wait(60)


def kill_slot_supervisors(runs: RunCodeClient) -> None:
    for pid in descendants(runs.process.pid):
        if b"slot_supervisor.py" in read_line(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif("docker" in SANDBOXES, reason="containers have no slot supervisor to kill")
def test_a_lost_sandbox_is_retried_before_it_is_an_error(one_slot: RunCodeClient) -> None:
    runs = one_slot
    sent = runs.send("import subprocess\nprint(subprocess.call(['sleep', '7.25']))")
    runs.wait_for_program("7.25")
    kill_slot_supervisors(runs)
    assert sent.result(timeout=120).json()["run_result"]["stdout"] == "0\n"
    sent = runs.send(nap("307.5"), run_timeout=400, compile_timeout=0)
    runs.wait_for_program("307.5")
    time.sleep(9)  # longer than the caller waits for a slot
    kill_slot_supervisors(runs)
    lost = sent.result(timeout=120)
    assert lost.status_code == 504
    assert (lost.json()["kind"], lost.json()["blame"]) == ("sandbox_lost", "infra")
    assert lost.json()["retryable"]
    assert runs.run("print(1)").json()["status"] == "Success"


def test_a_program_needs_a_key(team: JobClient) -> None:
    body = {"code": "print(1)", "language": "python"}
    url = f"{team.http.base_url}/run_code".replace("//run", "/run")
    assert httpx.post(url, json=body).status_code == 401
    assert httpx.post(url, json=body, auth=("", "a-wrong-key-altogether")).status_code == 401
    for answer in (team.http.post("/run_code", json=body), httpx.post(
        url, json=body, auth=("", KEYS["team"]), timeout=60
    )):  # fmt: skip
        assert answer.json()["status"] == "Success"
