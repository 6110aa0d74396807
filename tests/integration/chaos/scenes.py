"""Scripted faults, each checked by the same checker as random ones."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from reward_server.store.queue_statements import NEXT_ATTEMPT
from tests.conftest import children, descendants, read_line, wait_until
from tests.integration.chaos.checker import check
from tests.integration.chaos.client import Client
from tests.integration.chaos.faults import FIND_IDENTICAL, LOOK_UP, RECORD
from tests.integration.chaos.history import Answered, History
from tests.integration.chaos.programs import FAILURES, crashing, napping, rng_for
from tests.integration.chaos.running import observe_all, read_facts
from tests.integration.chaos.world.postgres import ask
from tests.integration.chaos.world.proxy import ConnectionCut, Moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.chaos.history import View
    from tests.integration.chaos.programs import Program
    from tests.integration.chaos.world.cluster import Member, World

_EMPTY = "TRUNCATE jobs, solutions, rewards, batches, batch_items"
_RETRY = f"SET state = 'queued', attempt = {NEXT_ATTEMPT}, faults"


class Scene:
    """A client of a world with scripted faults only, and the check at the end."""

    def __init__(self, world: World) -> None:
        asyncio.run(ask(world.url, _EMPTY))
        self.cluster = world.cluster
        self.history = History(oracle=dict(FAILURES))
        self.client = Client(world.cluster.servers, self.history, rng_for(1))
        self.server = world.cluster.servers[0]
        self._url = world.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.heal()
        self.client.close()

    @property
    def workers(self) -> list[Member]:
        """All members that run programs; the first server does not."""
        return [member for member in self.cluster.members if member is not self.server]

    def send(self, program: Program, server: Member | None = None) -> str:
        self.history.programs[program.mark] = program
        job_id = self.client.submit(program.mark, program, server or self.server)
        assert job_id is not None
        return job_id

    def answer(self, job_id: str) -> Answered:
        view = self.client.observe(job_id, 60, self.server)
        assert isinstance(view, Answered), view
        return view

    def check(self) -> list[str]:
        observe_all(self.client, self.history, self.cluster.servers)
        return check(self.history, read_facts(self._url))


@contextmanager
def only(scene: Scene, worker: Member) -> Iterator[None]:
    """Freeze all other workers."""
    others = [other for other in scene.workers if other is not worker]
    for other in others:
        other.send(signal.SIGSTOP)
    try:
        yield
    finally:
        for other in others:
            other.send(signal.SIGCONT)


def let_a_result_come_late(scene: Scene) -> None:
    """Delay a worker's result until another worker has recorded its own."""
    late = scene.workers[0]
    gate = late.gate
    assert gate is not None
    gate.hold_at(RECORD)
    with only(scene, late):
        job_id = scene.send(crashing("late"))
        wait_until(lambda: gate.is_blocked)
    assert scene.answer(job_id).attempt == 2
    gate.unblock()
    wait_until(lambda: gate.late_answers)


def send_one_key_twice(scene: Scene) -> None:
    """Send one key through two servers at the same time."""
    barrier = threading.Barrier(2)

    def send(server: Member) -> None:
        barrier.wait()
        scene.send(crashing("twice"), server)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(send, scene.cluster.servers))
    for job_id in scene.history.acknowledged():
        scene.answer(job_id)


def lose_a_sandbox_and_its_report(scene: Scene) -> Answered:
    """Kill a worker's sandbox, and cut the connection over which the worker reports it."""
    worker = scene.workers[0]
    assert worker.gate is not None
    worker.gate.cuts.append(ConnectionCut(_RETRY, Moment.BEFORE))
    with only(scene, worker):
        job_id = scene.send(napping("lost", "2.468"))
        wait_until(lambda: runs(worker, "2.468"))
        for pid in children(pid_of(worker)):
            if b"slot_supervisor.py" in read_line(pid):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: worker.gate is not None and not worker.gate.cuts)
    return scene.answer(job_id)


def lose_a_cache_lookup(scene: Scene) -> Answered:
    """Cut the connection over which a worker looks for an identical program."""
    for gate in scene.cluster.gates:
        gate.cuts.append(ConnectionCut(FIND_IDENTICAL, Moment.BEFORE))
    return scene.answer(scene.send(crashing("recalled")))


def lose_a_status_lookup(scene: Scene) -> None:
    """Cut the connection over which a server looks up a job's end."""
    assert scene.server.gate is not None
    with only(scene, scene.server):
        job_id = scene.send(crashing("cancelled"))
        scene.client.cancel("cancelled", job_id)
    scene.server.gate.cuts.append(ConnectionCut(LOOK_UP, Moment.BEFORE))
    scene.client.wait_for_any([job_id], 0, scene.server)
    assert not scene.server.gate.cuts
    scene.client.wait_for_any([job_id], 0, scene.server)


def kill_one_of_each(scene: Scene) -> dict[int, tuple[str, View]]:
    """Kill a server and a worker in the middle of a batch, and return the batch's items."""
    items = {f"batch{n}": crashing(f"batch{n}", 0.3) for n in range(12)}
    scene.history.programs.update(items)
    first = scene.cluster.servers[1]
    sent = scene.client.submit_batch(items, len(items), cancels_rest=False, server=first)
    assert sent is not None
    batch_id, job_ids = sent
    wait_until(lambda: sum(isinstance(scene.client.observe(one), Answered) for one in job_ids) >= 3)
    first.kill()
    scene.cluster.workers[0].kill()
    views = None
    while views is None:
        views = scene.client.observe_batch(batch_id, job_ids, len(items), 60)
    scene.cluster.start()
    return views


def pid_of(member: Member) -> int:
    assert member.process is not None
    return member.process.pid


def runs(member: Member, mark: str) -> bool:
    """Return whether a program with this mark runs below this member."""
    return any(mark.encode() in read_line(pid) for pid in descendants(pid_of(member)))
