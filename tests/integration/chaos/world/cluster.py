"""Servers and workers over one Postgres, each behind a gate, restarted when they die."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from tests.conftest import COMMAND, ROOT, SANDBOX, SMALL_LIMITS, free_port
from tests.integration.chaos.world.leftovers import Family
from tests.integration.chaos.world.postgres import own_postgres, url_of
from tests.integration.chaos.world.proxy import proxy_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.integration.chaos.world.postgres import Postgres
    from tests.integration.chaos.world.proxy import Gate, Proxy

LEASE_SECONDS = 2.0
_START_SECONDS = 120.0
_STOP_SECONDS = 90.0
SETTINGS = {
    **SANDBOX,
    **SMALL_LIMITS,
    "REWARD_SERVER_SANDBOX__SLOTS": "1",
    "REWARD_SERVER_SANDBOX__PRELOAD": "[]",
    "REWARD_SERVER_GRADE__PROCESSES": "1",
    "REWARD_SERVER_JOBS__AHEAD": "1",
    "REWARD_SERVER_JOBS__REUSE": "true",
    "REWARD_SERVER_JOBS__DRAIN_SECONDS": "1",
    "REWARD_SERVER_JOBS__LEASE_SECONDS": str(LEASE_SECONDS),
    "REWARD_SERVER_MAX_ATTEMPTS": "10",
}


@dataclass
class Member:
    """One process of the cluster, or its successor after a restart."""

    name: str
    words: Sequence[str]
    log: Path
    settings: Mapping[str, str]
    gate: Gate | None = None
    port: int | None = None
    command: Sequence[str | Path] = (COMMAND,)
    process: subprocess.Popen[bytes] | None = None
    is_ready: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        self.is_ready = False
        with self.log.open("ab") as output:
            output.write(b"--- started\n")
            self.process = subprocess.Popen(
                [*self.command, *self.words],
                env={**os.environ, **self.settings},
                stdout=output,
                stderr=output,
                cwd=ROOT,
            )

    def check_ready(self) -> bool:
        """Check whether the member has become ready since its last start."""
        if self.port is None:
            last = self.log.read_bytes().rpartition(b"--- started\n")[2]
            self.is_ready = b"is ready" in last
        else:
            try:
                answer = httpx.get(f"{self.url}/readyz", timeout=5)
                self.is_ready = answer.status_code == 200
            except httpx.TransportError:
                self.is_ready = False
        return self.is_ready

    def send(self, number: signal.Signals) -> None:
        if self.process is not None and self.is_alive:
            self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """Terminate the member and return its exit code; kill it if it does not stop in time."""
        assert self.process is not None
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL


class ChaosCluster:
    """The members, and their crashes that no fault explains."""

    def __init__(
        self,
        folder: Path,
        data_dir: Path,
        proxy: Proxy | None,
        command: Sequence[str | Path] = (COMMAND,),
    ) -> None:
        self.folder = folder
        self.data_dir = data_dir
        self.members: list[Member] = []
        self.crashes: list[str] = []
        self.family = Family()
        self._proxy = proxy
        self._command = command
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep_alive, daemon=True),
            threading.Thread(target=self._keep_recording, daemon=True),
        ]

    @property
    def servers(self) -> list[Member]:
        return [member for member in self.members if member.port is not None]

    @property
    def workers(self) -> list[Member]:
        return [member for member in self.members if member.port is None]

    @property
    def gates(self) -> list[Gate]:
        return [member.gate for member in self.members if member.gate is not None]

    def add_server(self, *options: str) -> Member:
        port = free_port()
        return self._add(
            f"server-{len(self.servers)}", ["serve", "--port", str(port), *options], port
        )

    def add_worker(self) -> Member:
        return self._add(f"worker-{len(self.workers)}", ["work"], None)

    def _add(self, name: str, words: Sequence[str], port: int | None) -> Member:
        settings = {**SETTINGS, "TMPDIR": str(self.folder / "tmp")}
        gate = None
        if self._proxy is not None:
            gate = self._proxy.open_gate(self.folder / "gates" / name)
            settings["DATABASE_URL"] = url_of(gate.folder)
        words = [*words, "--data-dir", str(self.data_dir)]
        member = Member(
            name, words, self.folder / f"{name}.log", settings, gate, port, self._command
        )
        self.members.append(member)
        return member

    def start(self) -> None:
        """Start all and wait until they are ready."""
        for member in self.members:
            if not member.is_alive:
                member.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        for member in self.members:
            while not member.check_ready():
                tail = member.log.read_text(errors="replace")[-3000:]
                assert time.monotonic() < deadline, f"{member.name} is not ready:\n{tail}"
                time.sleep(0.1)

    def watch(self) -> None:
        """Restart members that end, from now on, and record all their processes."""
        for thread in self._threads:
            thread.start()

    def _keep_alive(self) -> None:
        while not self._stopped.wait(0.3):
            for member in self.members:
                with member.lock:
                    if member.is_alive:
                        if not member.is_ready:
                            member.check_ready()
                        continue
                    if member.is_ready and member.process is not None:
                        code = member.process.returncode
                        self.crashes.append(f"{member.name} died by itself with {code}")
                    member.start()

    def _keep_recording(self) -> None:
        while not self._stopped.wait(0.2):
            self.family.note(self.pids())

    def pids(self) -> list[int]:
        return [member.process.pid for member in self.members if member.process is not None]

    def heal(self) -> None:
        for member in self.members:
            if member.gate is not None:
                member.gate.cuts.clear()
                member.gate.unblock()
            member.send(signal.SIGCONT)

    def stop(self) -> None:
        """Stop all members; an unexpected exit code counts as a crash."""
        self._stopped.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self.heal()
        self.family.note(self.pids())
        for member in self.members:
            member.send(signal.SIGTERM)
        for member in self.members:
            if member.process is not None:
                self.note_exit(member, member.stop())

    def note_exit(self, member: Member, code: int) -> None:
        """Record an unexpected exit code of a member that was asked to stop."""
        if code not in (0, -signal.SIGTERM):
            self.crashes.append(f"{member.name} was asked to stop and ended with {code}")


@dataclass(frozen=True, slots=True)
class World:
    """A cluster and the Postgres behind it."""

    cluster: ChaosCluster
    postgres: Postgres

    @property
    def url(self) -> str:
        """The address of Postgres that bypasses all faults."""
        return url_of(self.postgres.home)


@contextmanager
def open_world(
    folder: Path, data_dir: Path, command: Sequence[str | Path] = (COMMAND,)
) -> Iterator[World]:
    """Start an empty cluster over a Postgres of its own, and stop both at the end."""
    (folder / "tmp").mkdir()
    (folder / "database").mkdir()
    with ExitStack() as stack:
        postgres = stack.enter_context(own_postgres(folder / "database"))
        proxy = stack.enter_context(proxy_to(postgres.home))
        cluster = ChaosCluster(folder, data_dir, proxy, command)
        stack.callback(cluster.stop)
        yield World(cluster, postgres)
