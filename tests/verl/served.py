"""A reward server beside veRL, with a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.conftest import COMMAND, ROOT, free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK = "spooky-author-identification"
OTHER = "random-acts-of-pizza"
COPY = (
    "import shutil\n"
    'shutil.copy("/workdir/{task}/prepared/public/sample_submission.csv", "submission.csv")\n'
    'print("validation loss: {mark}")\n'
)


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    url: str
    process: subprocess.Popen[bytes]
    http: httpx.Client

    def kill(self) -> None:
        """End it without warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def score(self, run_id: str, step: int, mark: int, task: str = TASK) -> str:
        """Store a valid solution and return its id."""
        code = COPY.format(task=task, mark=mark)
        body = {"task_id": task, "code": code, "run_id": run_id, "step": step}
        answer: dict[str, Any] = self.http.post("/score", json=body).json()
        assert answer["valid"], answer
        solution_id: str = answer["solution_id"]
        return solution_id


@contextmanager
def serving(slots: int = 2) -> Iterator[Served]:
    """Serve two tasks from a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="reward-server-verl-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for task in (TASK, OTHER):
            words = ["tasks", "prepare", task, "--twin", "--data-dir", str(folder)]
            subprocess.run([COMMAND, *words], check=True, capture_output=True, cwd=ROOT)
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        process = _start(folder, port, slots)
        with httpx.Client(base_url=url, timeout=60) as http:
            try:
                wait_until(lambda: _is_ready(http), 120)
                yield Served(url, process, http)
            finally:
                process.terminate()
                process.wait(60)
        shutil.rmtree(folder / "postgres", ignore_errors=True)


def _start(folder: Path, port: int, slots: int) -> subprocess.Popen[bytes]:
    settings = {
        "REWARD_SERVER_SANDBOX__ENVIRONMENT": str(ROOT / ".venv-sandbox"),
        "REWARD_SERVER_SANDBOX__SLOTS": str(slots),
        "REWARD_SERVER_JOBS__AHEAD": "0",
    }
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [COMMAND, "serve", "--port", str(port), "--data-dir", str(folder)],
            env={**os.environ, **settings},
            stdout=log,
            stderr=log,
            cwd=ROOT,
        )


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
