"""The server as an operator sees it: keys, addresses, restarts, a full queue, lost processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from reward_server.errors import SetupError
from reward_server.settings import load_settings
from tests.conftest import (
    COMMAND,
    ROOT,
    children,
    descendants,
    is_alive,
    read_line,
    start_server,
    stop_server,
    wait_until,
)
from tests.support.job_client import LEAN, JobClient, own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TASK = "spooky-author-identification"
NAP = "import subprocess\nsubprocess.run(['sleep', '{}'])\nprint('through')\n"
KEY = "a-key-of-enough-length"


def test_a_restarted_server_finishes_its_jobs(own_dir: Path, tmp_path: Path) -> None:
    process, url = start_server(own_dir, tmp_path / "log", LEAN)
    body = {
        "task_id": TASK,
        "code": "import time\ntime.sleep(2)\n",
        "wait_seconds": 0,
        "idempotency_key": "one",
    }
    jobs = [
        httpx.post(f"{url}/score", json={**body, "idempotency_key": f"k{i}"}).json()["job_id"]
        for i in range(4)
    ]
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process, url = start_server(own_dir, tmp_path / "log", LEAN)
    try:
        for job in jobs:
            answer = httpx.get(f"{url}/v1/jobs/{job}?wait_seconds=60", timeout=70)
            assert answer.status_code == 200, answer.text
            assert answer.json()["duration_seconds"] >= 2
        listed = httpx.get(f"{url}/v1/solutions").json()["solutions"]
        assert sorted(line["job_id"] for line in listed) == sorted(jobs)
    finally:
        stop_server(process)


def test_a_server_with_a_key_refuses_requests_without_it(own_dir: Path, tmp_path: Path) -> None:
    process, url = start_server(own_dir, tmp_path / "log", LEAN | {"REWARD_SERVER_API_KEY": KEY})
    try:
        bad = ("", KEY, "Bearer wrong", f"Bearer {KEY}x", "Bearer é")
        for authorization in bad:
            headers = {b"Authorization": authorization.encode("latin-1")} if authorization else {}
            response = httpx.get(f"{url}/v1/tasks", headers=headers)
            assert response.status_code == 401
            assert response.json()["detail"] == "unauthorized"
        assert httpx.get(f"{url}/v1/tasks?api_key={KEY}").status_code == 401
        good = httpx.get(f"{url}/v1/tasks", headers={"Authorization": f"Bearer {KEY}"})
        assert good.status_code == 200
        assert httpx.post(f"{url}/score", json={}).status_code == 401
        assert httpx.get(f"{url}/livez").status_code == 200
        assert KEY not in (tmp_path / "log").read_text()
    finally:
        stop_server(process)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104
def test_a_public_address_needs_a_key(host: str) -> None:
    with pytest.raises(SetupError, match="API_KEY"):
        load_settings(host=host)


def test_serve_refuses_a_public_address_without_a_key(own_dir: Path) -> None:
    done = run("serve", "--host", "0.0.0.0", "--data-dir", str(own_dir))  # noqa: S104
    assert done.returncode == 1
    assert "API_KEY" in done.stderr


def test_an_unknown_setting_is_refused(own_dir: Path) -> None:
    done = run("check", "--data-dir", str(own_dir), REWARD_SERVER_SLOT="3")
    assert done.returncode == 1
    assert "REWARD_SERVER_SLOT" in done.stderr


def test_check_hides_secrets_and_names_what_is_missing(tmp_path: Path) -> None:
    done = run(
        "check", "--data-dir", str(tmp_path), "--port", "1",
        REWARD_SERVER_API_KEY=KEY,
        REWARD_SERVER_SANDBOX__ENVIRONMENT=str(tmp_path / "nowhere"),
        DATABASE_URL="postgresql://someone:hush-hush@127.0.0.1/db",
    )  # fmt: skip
    assert done.returncode == 1
    assert KEY not in done.stdout
    assert "hush-hush" not in done.stdout
    assert "virtual environment" in done.stdout
    assert "tasks prepare" in done.stdout


def test_check_describes_the_reward_scheme(own_dir: Path) -> None:
    done = run("check", "--data-dir", str(own_dir), "--port", "0")
    assert any(line.startswith("│ reward ") and "paper" in line for line in done.stdout.split("\n"))


def test_a_task_above_the_memory_budget_is_an_error_with_a_remedy(own_dir: Path) -> None:
    done = run(
        "check", "--data-dir", str(own_dir), "--port", "0",
        REWARD_SERVER_MEMORY_BUDGET_BYTES=str(256 << 20),
        REWARD_SERVER_SANDBOX__SLOTS="1000",
    )  # fmt: skip
    assert done.returncode == 1
    assert "MEMORY_BUDGET_BYTES" in done.stdout
    assert "durations are too long" in done.stdout


def test_slots_without_memory_are_a_warning_with_a_remedy(own_dir: Path) -> None:
    crowded = {
        "REWARD_SERVER_MEMORY_BUDGET_BYTES": str(16 << 30),
        "REWARD_SERVER_SANDBOX__SLOTS": "16",
    }
    words = ("check", "--data-dir", str(own_dir), "--port", "0")
    output = " ".join(run(*words, **crowded).stdout.split())
    assert "of 16 at once" in output
    assert "REWARD_SERVER_LIMITS__MEMORY_BYTES" in output
    roomy = {**crowded, "REWARD_SERVER_LIMITS__MEMORY_BYTES": str(1 << 30)}
    assert "of 16 at once" not in " ".join(run(*words, **roomy).stdout.split())


def test_without_a_sandbox_the_server_refuses_to_start(own_dir: Path, tmp_path: Path) -> None:
    done = run(
        "serve", "--data-dir", str(own_dir), "--port", "0",
        REWARD_SERVER_SANDBOX__ENVIRONMENT=str(tmp_path / "nowhere"),
    )  # fmt: skip
    assert done.returncode != 0
    assert "no virtual environment for programs" in done.stdout + done.stderr


@pytest.fixture(scope="module")
def strict(
    data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server with a short queue and few attempts, for all tests that leave it idle."""
    settings = {"REWARD_SERVER_QUEUE_LIMIT": "4", "REWARD_SERVER_MAX_ATTEMPTS": "2"}
    log = tmp_path_factory.mktemp("strict") / "log"
    with own_folder(data_dir) as folder:
        process, url = start_server(folder, log, LEAN | settings)
        try:
            yield process, url
        finally:
            stop_server(process)


def test_a_full_queue_says_when_to_retry(strict: tuple[subprocess.Popen[bytes], str]) -> None:
    _, url = strict
    body = {"task_id": TASK, "code": "import time\ntime.sleep(1)\n"}
    with ThreadPoolExecutor(12) as pool:
        sent = [pool.submit(httpx.post, f"{url}/score", json=body, timeout=60) for _ in range(12)]
        responses = [future.result() for future in sent]
    statuses = [response.status_code for response in responses]
    assert set(statuses) == {200, 429}
    refused = next(r for r in responses if r.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["kind"] == "overloaded"
    assert refused.json()["retryable"] is True
    assert httpx.get(f"{url}/livez").status_code == 200
    assert set(retry_as_asked(url, {**body, "wait_seconds": 0})) <= {202, 429}
    wait_until(lambda: is_idle(url))


def is_idle(url: str) -> bool:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return {"reward_jobs_queued 0.0", "reward_jobs_running 0.0"} <= set(lines)


def retry_as_asked(url: str, body: dict[str, object]) -> list[int]:
    """Fill the queue, retry when the server says so, and return all statuses until one is 202."""
    statuses: list[int] = []
    for _ in range(20):
        response = httpx.post(f"{url}/score", json=body, timeout=60)
        statuses.append(response.status_code)
        if statuses.count(429) == 0:
            continue
        if response.status_code == 202:
            return statuses
        time.sleep(int(response.headers["retry-after"]))
    pytest.fail(f"never accepted: {statuses}")


def kill_slot_supervisors(server: int) -> None:
    supervisors = [pid for pid in children(server) if b"slot_supervisor.py" in read_line(pid)]
    for pid in supervisors:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while any(is_alive(pid) for pid in supervisors):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def solutions(url: str, run_id: str) -> list[dict[str, Any]]:
    listed = httpx.get(f"{url}/v1/solutions", params={"run_id": run_id}).json()
    found: list[dict[str, Any]] = listed["solutions"]
    return found


def has_program(server: int) -> bool:
    return any(b"sleep" in read_line(pid) for pid in descendants(server))


def test_a_lost_slot_supervisor_never_gives_a_reward(
    strict: tuple[subprocess.Popen[bytes], str],
) -> None:
    process, url = strict
    body = {"task_id": TASK, "code": NAP.format(30), "run_id": "lost", "idempotency_key": "lost"}
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(httpx.post, f"{url}/score", json=body, timeout=60)
        for _ in range(2):
            wait_until(lambda: has_program(process.pid))
            kill_slot_supervisors(process.pid)
        response = sent.result()
    assert response.status_code == 503
    assert response.json()["kind"] == "sandbox_lost"
    assert response.json()["retryable"] is True
    assert "reward" not in response.json()
    assert solutions(url, "lost") == []
    after = httpx.post(f"{url}/score", json={"task_id": TASK, "code": "print(1)"}, timeout=60)
    assert after.status_code == 200
    again = httpx.post(f"{url}/score", json={**body, "wait_seconds": 0}, timeout=60)
    assert again.status_code == 202
    httpx.delete(f"{url}/v1/jobs/{again.json()['job_id']}").raise_for_status()
    wait_until(lambda: not has_program(process.pid))


def test_a_program_that_lost_its_slot_supervisor_runs_again(
    strict: tuple[subprocess.Popen[bytes], str],
) -> None:
    process, url = strict
    body = {"task_id": TASK, "code": NAP.format(3), "run_id": "again"}
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(httpx.post, f"{url}/score", json=body, timeout=60)
        wait_until(lambda: has_program(process.pid))
        kill_slot_supervisors(process.pid)
        response = sent.result()
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["attempt"] == 2
    assert answer["stdout_tail"] == "through\n"
    assert answer["duration_seconds"] >= 3
    (line,) = solutions(url, "again")
    assert line["solution_id"] == answer["solution_id"]
    failing = {"task_id": TASK, "code": "raise SystemExit(1)"}
    assert httpx.post(f"{url}/score", json=failing, timeout=60).json()["attempt"] == 1


def test_while_no_sandbox_can_start_jobs_wait_and_none_is_lost(
    own_dir: Path, tmp_path: Path
) -> None:
    settings = LEAN | {
        "REWARD_SERVER_MAX_ATTEMPTS": "2",
        "REWARD_SERVER_SANDBOX__KIND": "bubblewrap",
    }
    log = tmp_path / "log"
    shared, public = (own_dir / TASK).resolve(), own_dir / TASK / "prepared" / "public"
    (own_dir / TASK).unlink()
    shutil.copytree(shared, own_dir / TASK)
    process, url = start_server(own_dir, log, settings)
    try:
        with JobClient(url, "", process.pid) as client:
            public.rename(own_dir / "elsewhere")
            jobs = [client.submit(f"print({n})") for n in range(2)]
            wait_until(lambda: log.read_text().count("is retried") >= 5)
            assert {client.get(job_id, 0).status_code for job_id in jobs} == {202}
            (own_dir / "elsewhere").rename(public)
            answers = [client.answer(job_id) for job_id in jobs]
        assert [answer["stdout_tail"] for answer in answers] == [f"{n}\n" for n in range(2)]
    finally:
        stop_server(process)


def test_a_stopped_server_leaves_no_process(own_dir: Path, tmp_path: Path) -> None:
    process, url = start_server(own_dir, tmp_path / "log", LEAN)
    body = {"task_id": TASK, "code": "import time\ntime.sleep(60)\n", "wait_seconds": 0}
    httpx.post(f"{url}/score", json=body)
    time.sleep(0.5)
    family = descendants(process.pid)
    assert len(family) > 3
    stop_server(process)
    assert [pid for pid in family if is_alive(pid)] == []


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", **variables}
    return subprocess.run(
        [COMMAND, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
