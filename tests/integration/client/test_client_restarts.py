"""A server that dies in the middle and comes back: every sample has its one answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from tests.conftest import SANDBOX, start_process, start_server, stop_server, wait_until
from tests.support.job_client import LEAN, SLOTS, TASK, own_folder
from trainer_client import AsyncRewardClient, Submission

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

SETTINGS = {
    **LEAN,
    "REWARD_SERVER_SANDBOX__SLOTS": str(SLOTS),
    "REWARD_SERVER_JOBS__LEASE_SECONDS": "2",
}
COUNT = 40


async def test_a_batch_survives_a_server_that_is_killed(data_dir: Path, tmp_path: Path) -> None:
    with own_folder(data_dir) as folder:
        process, url = start_server(folder, tmp_path / "log", SETTINGS)
        try:
            async with AsyncRewardClient(url) as client:
                process = await kill_in_the_middle(client, process, url, folder, tmp_path)
                page = await client.get("/v1/solutions", run_id="one", limit=500)
            assert len(page["solutions"]) == COUNT
            samples = {line["sample_id"] for line in page["solutions"]}
            assert len(samples) == COUNT
        finally:
            stop_server(process)


async def kill_in_the_middle(
    client: AsyncRewardClient,
    process: subprocess.Popen[bytes],
    url: str,
    folder: Path,
    tmp_path: Path,
) -> subprocess.Popen[bytes]:
    items = [
        Submission(TASK, code="import time\ntime.sleep(0.1)\n", run_id="one", sample_id=str(n))
        for n in range(COUNT)
    ]
    results = []
    async for result in client.score_many(items):
        results.append(result)
        if len(results) == 5:
            process = await asyncio.to_thread(kill_and_restart, process, url, folder, tmp_path)
    assert sorted(one.index for one in results) == list(range(COUNT))
    assert [one.error for one in results if one.answer is None] == []
    return process


def kill_and_restart(
    process: subprocess.Popen[bytes], url: str, folder: Path, tmp_path: Path
) -> subprocess.Popen[bytes]:
    process.kill()
    process.wait()
    words = ["serve", "--port", str(urlsplit(url).port), "--data-dir", str(folder)]
    again = start_process(words, tmp_path / "log-again", {**SANDBOX, **SETTINGS})
    wait_until(lambda: again.poll() is not None or answers(url), 120)
    assert again.poll() is None, (tmp_path / "log-again").read_text()
    return again


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False
