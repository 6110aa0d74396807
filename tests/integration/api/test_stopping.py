"""A draining server ends all waits early, and answers until its running jobs have ended."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx

from tests.conftest import start_server, stop_server, wait_until
from tests.support.job_client import LEAN, JobClient, item, nap

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    **LEAN,
    "REWARD_SERVER_SANDBOX__SLOTS": "2",
    "REWARD_SERVER_JOBS__DRAIN_SECONDS": "600",
}
LONG = 3600


def test_a_draining_server_refuses_jobs_and_finishes_running_ones(
    own_dir: Path, tmp_path: Path
) -> None:
    process, url = start_server(own_dir, tmp_path / "log", SETTINGS)
    try:
        with JobClient(url, "", process.pid) as client, ThreadPoolExecutor(4) as pool:
            job_id = client.submit(nap("68.5"))
            client.wait_for_program("68.5")
            batch = {"items": [item(nap("69.5"))]}
            wanted = {"job_ids": [job_id], "wait_seconds": LONG}
            sent = [
                pool.submit(client.get, job_id, LONG),
                pool.submit(client.http.post, "/v1/jobs/wait", json=wanted),
                pool.submit(client.http.post, "/score/batch", json=batch),
            ]
            client.wait_for_program("69.5")
            process.send_signal(signal.SIGTERM)
            one, many, stream = [waiting.result(timeout=120) for waiting in sent]
            assert (one.status_code, one.json()["status"]) == (202, "running")
            assert many.json() == {"ended": []}
            assert stream.text.strip() == ""
            assert client.http.get("/livez").status_code == 200
            assert client.http.get("/readyz").status_code == 503
            refused = client.post("print(1)")
            assert (refused.status_code, refused.json()["retryable"]) == (503, True)
            assert int(refused.headers["retry-after"]) >= 1
            assert client.http.post("/score/batch", json=batch).status_code == 503
            assert client.runs("68.5")
            looked_up = client.get(job_id, LONG)
            assert looked_up.status_code == 202
            batch_id = stream.headers["batch-id"]
            assert not client.http.get(f"/v1/batches/{batch_id}").json()["complete"]
            assert process.poll() is None
            client.cancel(job_id)
            assert client.get(job_id, LONG).json()["kind"] == "cancelled"
            wait_until(lambda: not client.runs("68.5"))
            process.send_signal(signal.SIGTERM)  # a second signal: do not wait for the other job
            process.wait(60)
    finally:
        stop_server(process)
    with httpx.Client() as probe:
        wait_until(lambda: _is_gone(probe, url))


def _is_gone(client: httpx.Client, url: str) -> bool:
    try:
        client.get(f"{url}/livez")
    except httpx.TransportError:
        return True
    return False
