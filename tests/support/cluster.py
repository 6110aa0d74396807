"""Servers and workers on one data directory, which a test may stop, kill or freeze."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from reward_server.store.engine import make_engine
from reward_server.store.postgres.embedded import embedded_postgres
from tests.conftest import (
    SANDBOX,
    START_SECONDS,
    descendants,
    read_line,
    start_process,
    start_server,
    stop_server,
    wait_until,
)
from tests.support.job_client import LEAN, SLOTS, JobClient

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
    """Servers and workers that share one data directory; a test may kill any of them."""

    def __init__(self, data_dir: Path, folder: Path) -> None:
        self.data_dir = data_dir
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._servers: list[tuple[subprocess.Popen[bytes], JobClient]] = []
        self._workers: list[subprocess.Popen[bytes]] = []

    def serve(self, *options: str) -> tuple[subprocess.Popen[bytes], JobClient]:
        """Start a server, by default without a worker."""
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
        wait_until(
            lambda: b"is ready" in log.read_bytes() or process.poll() is not None, START_SECONDS
        )
        assert process.poll() is None, log.read_text()
        return process

    def server(self) -> tuple[subprocess.Popen[bytes], JobClient]:
        """Return a running server."""
        living = [(process, client) for process, client in self._servers if process.poll() is None]
        return living[0] if living else self.serve()

    def workers(self, count: int) -> list[subprocess.Popen[bytes]]:
        """Start or stop workers until there are so many."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        self._workers += [self.work() for _ in range(count - len(self._workers))]
        while len(self._workers) > count:
            stop_server(self._workers.pop())
        return self._workers

    def holder(self, mark: str) -> subprocess.Popen[bytes]:
        """Wait until a worker runs the program with this mark, and return the worker."""
        wait_until(lambda: any(runs(worker, mark) for worker in self._workers))
        return next(worker for worker in self._workers if runs(worker, mark))

    def stop(self) -> None:
        for _, client in self._servers:
            client.http.close()
        for process in reversed(self._started):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                stop_server(process)


def kill(process: subprocess.Popen[bytes]) -> list[int]:
    """Kill a process and return its descendants."""
    family = descendants(process.pid)
    process.kill()
    process.wait()
    return family


def runs(process: subprocess.Popen[bytes], mark: str) -> bool:
    return any(mark.encode() in read_line(pid) for pid in descendants(process.pid))


def stored(data_dir: Path, question: str, **parameters: object) -> Any:  # noqa: ANN401
    """Query the database directly."""
    return execute(data_dir, question, **parameters)


def execute(data_dir: Path, *statements: str, **parameters: object) -> Any:  # noqa: ANN401
    """Execute statements in the database and return the last one's value."""

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
