"""A reward server beside veRL: another process, of another environment."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent.parent
COMMAND = ROOT / ".venv" / "bin" / "reward-server"
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


def wait_until(happens: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@contextmanager
def serving(slots: int = 2) -> Iterator[Served]:
    """Serve two tasks from a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="reward-server-verl-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for task in (TASK, OTHER):
            words = ["tasks", "prepare", task, "--twin", "--data-dir", str(folder)]
            subprocess.run([COMMAND, *words], check=True, capture_output=True, cwd=ROOT)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        process = _start(folder, port, slots)
        with httpx.Client(base_url=url, timeout=60) as http:
            try:
                wait_until(lambda: _is_ready(http), 120)
                yield Served(url, process, http)
            finally:
                process.terminate()
                process.wait(60)
                _end_postgres(folder)
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


def _end_postgres(folder: Path) -> None:
    """End the database of a server that was killed; of another it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        pid = int((folder / "postgres/data/postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGQUIT)
        wait_until(lambda: not Path(f"/proc/{pid}").exists())


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
