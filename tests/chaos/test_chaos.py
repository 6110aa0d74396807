"""Durable jobs under faults: what was accepted ends once, with the reward it has earned."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests.chaos.checker import check
from tests.chaos.client import Client
from tests.chaos.faults import RECORD
from tests.chaos.history import Answered, History
from tests.chaos.postgres import ask
from tests.chaos.programs import FAILURES, Program, crashing
from tests.chaos.running import Plan, look_at_all, read_facts, running_world, unleash
from tests.chaos.sabotaged import CONSTRAINTS
from tests.conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.chaos.cluster import Member, World

SECONDS = 30.0
SABOTAGED = (sys.executable, "-m", "tests.chaos.sabotaged")
_EMPTY = "TRUNCATE jobs, solutions, rewards, batches, batch_items"


@contextmanager
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="reward-chaos-") as name:
        path = Path(name)
        path.chmod(0o755)  # open to the account that root runs Postgres as
        yield path


@pytest.fixture(scope="module")
def world(data_dir: Path) -> Iterator[World]:
    with open_folder() as folder, running_world(folder, data_dir) as made:
        yield made


@pytest.fixture(scope="module")
def sabotaged_world(data_dir: Path) -> Iterator[World]:
    with open_folder() as folder, running_world(folder, data_dir, SABOTAGED) as made:
        for statement in CONSTRAINTS:
            asyncio.run(ask(made.url, statement))
        yield made


class Scene:
    """A client of a world in which only directed faults happen, and the check at the end."""

    def __init__(self, world: World) -> None:
        asyncio.run(ask(world.url, _EMPTY))
        self.cluster = world.cluster
        self.history = History(oracle=dict(FAILURES))
        self.client = Client(world.cluster.servers, self.history, random.Random(1))
        self._url = world.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def send(self, program: Program, server: Member) -> str:
        self.history.programs[program.mark] = program
        job_id = self.client.submit(program.mark, program, server)
        assert job_id is not None
        return job_id

    def check(self) -> list[str]:
        look_at_all(self.client, self.history, self.cluster.servers)
        return check(self.history, read_facts(self._url))


def let_a_result_come_late(scene: Scene) -> None:
    """Keep a worker's result on its way until another has recorded its own."""
    server = scene.cluster.servers[0]
    late, *others = [member for member in scene.cluster.members if member is not server]
    assert late.gate is not None
    gate = late.gate
    for other in others:
        other.send(signal.SIGSTOP)
    gate.hold_at(RECORD)
    try:
        job_id = scene.send(crashing("late"), server)
        wait_until(lambda: gate.is_blocked)
    finally:
        for other in others:
            other.send(signal.SIGCONT)
    view = scene.client.look(job_id, 60, server)
    gate.unblock()
    assert isinstance(view, Answered)
    assert view.attempt == 2
    wait_until(lambda: gate.late_answers)


def send_one_key_twice(scene: Scene) -> None:
    """Send one key through two servers at the same moment."""
    barrier = threading.Barrier(2)

    def send(server: Member) -> None:
        barrier.wait()
        scene.send(crashing("twice"), server)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(send, scene.cluster.servers))
    for job_id in scene.history.acknowledged():
        assert scene.client.look(job_id, 60) is not None


def test_a_result_that_comes_late_is_fenced_off(world: World) -> None:
    with Scene(world) as scene:
        let_a_result_come_late(scene)
        assert scene.check() == []


def test_one_key_sent_twice_at_once_is_one_job(world: World) -> None:
    with Scene(world) as scene:
        send_one_key_twice(scene)
        assert scene.check() == []


def test_the_checker_notices_that_there_are_no_fences(sabotaged_world: World) -> None:
    with Scene(sabotaged_world) as scene:
        let_a_result_come_late(scene)
        assert any("has 2 results" in line for line in scene.check())


def test_the_checker_notices_that_keys_are_not_unique(sabotaged_world: World) -> None:
    with Scene(sabotaged_world) as scene:
        send_one_key_twice(scene)
        assert "key twice has 2 jobs" in scene.check()


def test_nothing_is_lost_doubled_or_mixed_up_whatever_fails(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.SystemRandom().randrange(1 << 31)
    with open_folder() as folder, running_world(folder, data_dir) as world:
        report = unleash(world, Plan(SECONDS, seed))
    with capsys.disabled():
        print("", *report.lines(), sep="\n")
    assert report.violations == []
