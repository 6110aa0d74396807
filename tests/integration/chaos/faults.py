"""The nemesis injects one random fault after another, some at the same time."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.integration.chaos.programs import rng_for
from tests.integration.chaos.world.cluster import LEASE_SECONDS
from tests.integration.chaos.world.proxy import ConnectionCut, Moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.chaos.world.cluster import Member, World

# Parts of the statements that accept, claim, renew, record, expire, cancel, commit and look up.
ACCEPT = "INSERT INTO jobs"
CLAIM = "WITH RECURSIVE waiting"
RENEW = "UPDATE jobs SET lease_until"
RECORD = "INSERT INTO solutions"
EXPIRE = "SELECT id AS lost_id"
CANCEL = "SET state = 'cancelled', finished_at = now()"
COMMIT = "COMMIT"
LOOK_UP = "FROM jobs WHERE id = "
FIND_IDENTICAL = "reused_from IS NULL"
STATEMENTS = (
    *(ACCEPT, CLAIM, RENEW, RECORD, EXPIRE, CANCEL, COMMIT, LOOK_UP, FIND_IDENTICAL),
    *(ACCEPT, CLAIM, RECORD),
)

_RECOVERY_SECONDS = 60.0


def _serves(member: Member) -> bool:
    return member.is_ready and member.is_alive


class Nemesis:
    """Injects one fault after another into a world until it is stopped."""

    def __init__(self, world: World, seed: int, pause_seconds: float) -> None:
        self._world = world
        self._rng = rng_for(seed, "nemesis")
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
            "partition a worker": self._partition,
        }
        if world.postgres.has_disk:
            self._faults["fill the disk"] = self._fill_disk

    def start(self) -> None:
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop, and undo the faults that are still active."""
        self._stopped.set()
        self._thread.join()
        self._heal()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        # Every kind once before any comes twice, so that a short run has all of them.
        waiting: list[str] = []
        try:
            while not self._stopped.is_set():
                if not waiting:
                    waiting = list(self._faults)
                    self._rng.shuffle(waiting)
                name = waiting.pop()
                self._faults[name]()
                self.done[name] += 1
                self._stopped.wait(self._rng.uniform(0, 2 * self._pause_seconds))
                self._wait_for_recovery()
                self.rounds += not waiting
        except BaseException as failure:  # noqa: BLE001 - raised where it is waited for
            self._failure = failure

    def _wait_for_recovery(self) -> None:
        """Wait until a server and a worker are ready: a fault harms only what runs."""
        cluster, deadline = self._world.cluster, time.monotonic() + _RECOVERY_SECONDS
        while not self._stopped.wait(0.1) and time.monotonic() < deadline:
            if all(any(map(_serves, kind)) for kind in (cluster.servers, cluster.workers)):
                return

    def _heal(self) -> None:
        self._world.postgres.heal()
        self._world.cluster.heal()

    def _draw(self, members: list[Member]) -> Member:
        return self._rng.choice([member for member in members if _serves(member)] or members)

    def _kill(self, members: list[Member]) -> None:
        member = self._draw(members)
        with member.lock:
            member.kill()
            member.is_ready = False

    def _freeze(self, members: list[Member]) -> None:
        """Stop a process for longer than its leases, so that its next writes come too late."""
        member = self._draw(members)
        member.send(signal.SIGSTOP)
        time.sleep(LEASE_SECONDS + self._rng.uniform(0.5, 3))
        member.send(signal.SIGCONT)

    def _drain(self) -> None:
        member = self._draw(self._world.cluster.members)
        with member.lock:
            if _serves(member):
                self._world.cluster.note_exit(member, member.stop())
            member.is_ready = False

    def _restart_postgres(self) -> None:
        self._world.postgres.restart(self._rng.choice(("fast", "immediate")))

    def _pause_postgres(self) -> None:
        self._world.postgres.freeze()
        time.sleep(self._rng.choice((0.5, 1.5, LEASE_SECONDS + 1, LEASE_SECONDS + 3)))
        self._world.postgres.thaw()

    def _cut(self) -> None:
        for gate in self._world.cluster.gates:
            parts = self._rng.sample(STATEMENTS, 4)
            gate.cuts += [ConnectionCut(part, self._rng.choice(list(Moment))) for part in parts]
        self._stopped.wait(2)

    def _partition(self) -> None:
        """Block one worker's connections to Postgres for longer than its leases."""
        gate = self._draw(self._world.cluster.workers).gate
        assert gate is not None
        gate.block()
        time.sleep(LEASE_SECONDS + self._rng.uniform(0.5, 2))
        gate.unblock()

    def _fill_disk(self) -> None:
        """Fill the disk: statements fail, and so does Postgres when it cannot write its log."""
        self._world.postgres.fill_disk()
        if self._rng.random() < 0.5:
            self.done["postgres died of a full disk"] += self._world.postgres.use_up_log()
        self._stopped.wait(self._rng.uniform(1, 3))
        self._world.postgres.empty_disk()
        with suppress(subprocess.SubprocessError):
            self._world.postgres.heal()
