"""A server that is told to stop lets go of all who wait, and answers until what runs has ended."""

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


def test_a_server_that_is_told_to_stop_lets_go_takes_nothing_in_and_ends_what_runs(
    own_dir: Path, tmp_path: Path
) -> None:
    process, url = start_server(own_dir, tmp_path / "log", SETTINGS)
    try:
        with JobClient(url, "", process.pid) as desk, ThreadPoolExecutor(4) as pool:
            job_id = desk.submit(nap("68.5"))
            desk.wait_for_program("68.5")
            batch = {"items": [item(nap("69.5"))]}
            wanted = {"job_ids": [job_id], "wait_seconds": LONG}
            sent = [
                pool.submit(desk.get, job_id, LONG),
                pool.submit(desk.http.post, "/v1/jobs/wait", json=wanted),
                pool.submit(desk.http.post, "/score/batch", json=batch),
            ]
            desk.wait_for_program("69.5")
            process.send_signal(signal.SIGTERM)
            one, many, stream = [waiting.result(timeout=120) for waiting in sent]
            assert (one.status_code, one.json()["status"]) == (202, "running")
            assert many.json() == {"ended": []}
            assert stream.text.strip() == ""
            assert desk.http.get("/livez").status_code == 200
            assert desk.http.get("/readyz").status_code == 503
            refused = desk.post("print(1)")
            assert (refused.status_code, refused.json()["retryable"]) == (503, True)
            assert int(refused.headers["retry-after"]) >= 1
            assert desk.http.post("/score/batch", json=batch).status_code == 503
            assert desk.runs("68.5")
            looked_up = desk.get(job_id, LONG)
            assert looked_up.status_code == 202
            batch_id = stream.headers["batch-id"]
            assert not desk.http.get(f"/v1/batches/{batch_id}").json()["complete"]
            assert process.poll() is None
            desk.cancel(job_id)
            assert desk.get(job_id, LONG).json()["kind"] == "cancelled"
            wait_until(lambda: not desk.runs("68.5"))
            process.send_signal(signal.SIGTERM)  # told again, it does not wait for the other
            process.wait(60)
    finally:
        stop_server(process)
    with httpx.Client() as client:
        wait_until(lambda: _is_gone(client, url))


def _is_gone(client: httpx.Client, url: str) -> bool:
    try:
        client.get(f"{url}/livez")
    except httpx.TransportError:
        return True
    return False
