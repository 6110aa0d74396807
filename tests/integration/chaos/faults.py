"""The nemesis: one fault after another, drawn by lot, some at the same time."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.integration.chaos.cluster import LEASE_SECONDS
from tests.integration.chaos.programs import lot_of
from tests.integration.chaos.proxy import ConnectionCut, Moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.chaos.cluster import Member, World

# Parts of the statements that accept, borrow, hold, record, take away, cancel, and end a batch.
ACCEPT = "INSERT INTO jobs"
CLAIM = "WITH RECURSIVE waiting"
HOLD = "UPDATE jobs SET lease_until"
RECORD = "INSERT INTO solutions"
EXPIRE = "SELECT id AS lost_id"
CANCEL = "SET state = 'cancelled', finished_at = now()"
COMMIT = "COMMIT"
LOOK = "FROM jobs WHERE id = "
RECALL = "reused_from IS NULL"
STATEMENTS = (
    *(ACCEPT, CLAIM, HOLD, RECORD, EXPIRE, CANCEL, COMMIT, LOOK, RECALL),
    *(ACCEPT, CLAIM, RECORD),
)

_COMPANY_SECONDS = 60.0


def _serves(member: Member) -> bool:
    return member.is_ready and member.is_alive


class Nemesis:
    """Does one thing after another to a world until it is stopped."""

    def __init__(self, world: World, seed: int, pause_seconds: float) -> None:
        self._world = world
        self._lot = lot_of(seed, "nemesis")
        self._pause_seconds = pause_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._failure: BaseException | None = None
        self.done: Counter[str] = Counter()
        self.rounds = 0
        self._faults: dict[str, Callable[[], None]] = {
            "kill a server": lambda: self._kill(self._world.cluster.servers),
            "kill a worker": lambda: self._kill(self._world.cluster.workers),
            "freeze a worker": lambda: self._freeze(self._world.cluster.workers),
            "freeze a server": lambda: self._freeze(self._world.cluster.servers),
            "drain a member": self._drain,
            "restart postgres": self._restart_postgres,
            "pause postgres": self._pause_postgres,
            "cut connections": self._cut,
            "part a worker": self._part,
        }
        if world.postgres.has_disk:
            self._faults["fill the disk"] = self._fill_disk

    def start(self) -> None:
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop, and undo whatever is still broken."""
        self._stopped.set()
        self._thread.join()
        self._heal()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        # Every kind once before any comes twice: a short run meets all of them.
        waiting: list[str] = []
        try:
            while not self._stopped.is_set():
                if not waiting:
                    waiting = list(self._faults)
                    self._lot.shuffle(waiting)
                name = waiting.pop()
                self._faults[name]()
                self.done[name] += 1
                self._stopped.wait(self._lot.uniform(0, 2 * self._pause_seconds))
                self._wait_for_company()
                self.rounds += not waiting
        except BaseException as failure:  # noqa: BLE001 - raised where it is waited for
            self._failure = failure

    def _wait_for_company(self) -> None:
        """Leave time to come back: where nothing runs, no fault does any harm."""
        cluster, deadline = self._world.cluster, time.monotonic() + _COMPANY_SECONDS
        while not self._stopped.wait(0.1) and time.monotonic() < deadline:
            if all(any(map(_serves, kind)) for kind in (cluster.servers, cluster.workers)):
                return

    def _heal(self) -> None:
        self._world.postgres.heal()
        self._world.cluster.heal()

    def _draw(self, members: list[Member]) -> Member:
        return self._lot.choice([member for member in members if _serves(member)] or members)

    def _kill(self, members: list[Member]) -> None:
        member = self._draw(members)
        with member.lock:
            member.kill()
            member.is_ready = False

    def _freeze(self, members: list[Member]) -> None:
        """Stop a process for longer than its leases, so that what it does next comes too late."""
        member = self._draw(members)
        member.send(signal.SIGSTOP)
        time.sleep(LEASE_SECONDS + self._lot.uniform(0.5, 3))
        member.send(signal.SIGCONT)

    def _drain(self) -> None:
        member = self._draw(self._world.cluster.members)
        with member.lock:
            if _serves(member):
                self._world.cluster.note_exit(member, member.stop())
            member.is_ready = False

    def _restart_postgres(self) -> None:
        self._world.postgres.restart(self._lot.choice(("fast", "immediate")))

    def _pause_postgres(self) -> None:
        self._world.postgres.freeze()
        time.sleep(self._lot.choice((0.5, 1.5, LEASE_SECONDS + 1, LEASE_SECONDS + 3)))
        self._world.postgres.thaw()

    def _cut(self) -> None:
        for gate in self._world.cluster.gates:
            parts = self._lot.sample(STATEMENTS, 4)
            gate.cuts += [ConnectionCut(part, self._lot.choice(list(Moment))) for part in parts]
        self._stopped.wait(2)

    def _part(self) -> None:
        """Keep one worker away from Postgres for longer than its leases."""
        gate = self._draw(self._world.cluster.workers).gate
        assert gate is not None
        gate.block()
        time.sleep(LEASE_SECONDS + self._lot.uniform(0.5, 2))
        gate.unblock()

    def _fill_disk(self) -> None:
        """Let statements fail, or Postgres itself, which cannot go on without its log."""
        self._world.postgres.fill_disk()
        if self._lot.random() < 0.5:
            self.done["postgres died of a full disk"] += self._world.postgres.use_up_log()
        self._stopped.wait(self._lot.uniform(1, 3))
        self._world.postgres.empty_disk()
        with suppress(subprocess.SubprocessError):
            self._world.postgres.heal()
