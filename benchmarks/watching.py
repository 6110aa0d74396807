"""Looking at a server from outside while it is under load: latency, memory, connections."""

from __future__ import annotations

import asyncio
import http.client
import multiprocessing
import os
import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import busy_seconds
from transport import HOST, WireMeter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

_EVERY_SECONDS = 0.02
_LOOK_SECONDS = 2.0
_KEEPERS = ("checkpointer", "writer", "launcher", "walwriter", "worker", "logger")


@dataclass(slots=True)
class Pulse:
    """How long /livez took, in milliseconds, by what was going on."""

    took_ms: list[tuple[float, float]] = field(default_factory=list)
    failed: int = 0

    def since(self, moment: float) -> list[float]:
        """Return what was measured from a moment on, sorted."""
        return sorted(took for at, took in self.took_ms if at >= moment)


@contextmanager
def pulse(port: int) -> Iterator[Pulse]:
    """Ask /livez all along from a process of its own, which nothing but the machine holds up."""
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=_keep_asking, args=(port, far), daemon=True)
    process.start()
    found = Pulse()
    try:
        yield found
    finally:
        near.send("stop")
        found.took_ms, found.failed = near.recv()
        process.join()


def _keep_asking(port: int, orders: Connection) -> None:
    took: list[tuple[float, float]] = []
    failed = 0
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    while not orders.poll(_EVERY_SECONDS):
        begun = time.monotonic()
        try:
            connection.request("GET", "/livez")
            response = connection.getresponse()
            response.read()
            failed += response.status != 200
        except OSError:
            connection.close()
            failed += 1
        took.append((begun, 1e3 * (time.monotonic() - begun)))
    orders.send((took, failed))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The server at one moment."""

    at: float
    server_bytes: int
    server_seconds: float
    database_seconds: float
    machine_seconds: float
    connections: int
    busy_connections: int
    queued: float
    ended: float


@dataclass(slots=True)
class ProcessWatch:
    """Looks at the server every other second."""

    pid: int
    port: int
    data_dir: Path
    looks: list[Snapshot] = field(default_factory=list)

    async def keep_looking(self) -> None:
        """Look until cancelled."""
        wire = WireMeter(self.port)
        while True:
            numbers = _numbers((await wire.get("/metrics")).body.decode())
            postgres = _postgres(self.data_dir)
            backends = [title for title in map(_title, postgres) if _serves(title)]
            self.looks.append(
                Snapshot(
                    at=time.monotonic(),
                    server_bytes=resident_bytes(self.pid),
                    server_seconds=cpu_seconds(self.pid),
                    database_seconds=sum(map(cpu_seconds, postgres)),
                    machine_seconds=busy_seconds(),
                    connections=len(backends),
                    busy_connections=sum(not title.endswith("idle") for title in backends),
                    queued=numbers.get("reward_jobs_queued", 0.0),
                    ended=numbers.get("reward_job_duration_seconds_count", 0.0),
                )
            )
            await asyncio.sleep(_LOOK_SECONDS)

    def since(self, moment: float) -> list[Snapshot]:
        """Return what was seen from a moment on."""
        return [look for look in self.looks if look.at >= moment]


def bytes_per_minute(looks: list[Snapshot]) -> float:
    """Return the slope of memory over time."""
    fit = statistics.linear_regression(
        [look.at for look in looks], [float(look.server_bytes) for look in looks]
    )
    return 60 * fit.slope


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process has used, its threads' too; none when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _numbers(text: str) -> dict[str, float]:
    plain = (line.split(" ") for line in text.splitlines() if line[0] != "#" and "{" not in line)
    return {name: float(value) for name, value in plain}


def _postgres(data_dir: Path) -> list[int]:
    """Return the processes of the embedded Postgres."""
    (pid_file,) = data_dir.rglob("postmaster.pid")
    postmaster = int(pid_file.read_text().split()[0])
    pids = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [int(pid) for pid in pids]


def _serves(title: str) -> bool:
    return bool(title) and not any(word in title for word in _KEEPERS)


def _title(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()
