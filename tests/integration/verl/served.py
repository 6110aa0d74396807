"""A reward server beside veRL, with a database of its own, that may be killed."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.conftest import start_server, stop_server, wait_until
from tests.support.job_client import own_folder

if TYPE_CHECKING:
    import subprocess
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
def serving(data_dir: Path, slots: int = 2) -> Iterator[Served]:
    """Serve with so many slots."""
    settings = {"REWARD_SERVER_SANDBOX__SLOTS": str(slots), "REWARD_SERVER_JOBS__AHEAD": "0"}
    with own_folder(data_dir) as folder:
        process, url = start_server(folder, folder / "log", settings)
        with httpx.Client(base_url=url, timeout=60) as http:
            try:
                yield Served(url, process, http)
            finally:
                stop_server(process)
                _end_postgres(folder)


def _end_postgres(folder: Path) -> None:
    """End the database of a server that was killed; of another it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        pid = int((folder / "postgres/data/postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGQUIT)
        wait_until(lambda: not Path(f"/proc/{pid}").exists())
