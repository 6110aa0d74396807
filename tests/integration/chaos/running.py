"""One chaos run: the oracle without faults, then faults, recovery, and the checks."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import COMMAND, wait_until
from tests.integration.chaos.checker import check, count_endings
from tests.integration.chaos.client import Client
from tests.integration.chaos.faults import Nemesis
from tests.integration.chaos.history import History, JobFact, JobFacts, Open, SolutionFact
from tests.integration.chaos.load import ChaosLoad, measure_oracle
from tests.integration.chaos.programs import rng_for
from tests.integration.chaos.world.cluster import open_world
from tests.integration.chaos.world.leftovers import find_leftovers
from tests.integration.chaos.world.postgres import ask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Row

    from tests.integration.chaos.world.cluster import Member, World

_END_SECONDS = 300.0
_ROUND_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ChaosPlan:
    """How long a run takes, its seed, and how many faults and clients it has."""

    seconds: float
    seed: int
    clients: int = 4
    most_open: int = 40
    pause_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class ChaosReport:
    """The results of a run."""

    plan: ChaosPlan
    violations: list[str]
    faults: Counter[str]
    endings: Counter[str]
    requests: Counter[str]
    attempts: Counter[int]
    has_disk: bool
    end_seconds: float

    def lines(self) -> Iterator[str]:
        yield f"seed {self.plan.seed}, {self.plan.seconds:.0f} s, {self.plan.clients} clients"
        yield "faults: " + _counted(self.faults)
        if not self.has_disk:
            yield "no full disk: that takes root and the right to mount"
        yield "requests: " + _counted(self.requests)
        yield "jobs: " + _counted(self.endings)
        yield "attempts: " + _counted(self.attempts)
        yield f"all jobs had ended {self.end_seconds:.1f} s after the last fault"
        yield f"{len(self.violations)} violations"
        yield from self.violations[:50]


def _counted(counter: Counter[str] | Counter[int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in sorted(counter.items()))


@contextmanager
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="reward-chaos-") as name:
        path = Path(name)
        path.chmod(0o755)  # open to the account that root runs Postgres as
        yield path


@contextmanager
def running_world(
    folder: Path, data_dir: Path, workers: int = 2, command: Sequence[str | Path] = (COMMAND,)
) -> Iterator[World]:
    """Start two servers, one of them with a worker, and some more workers."""
    with open_world(folder, data_dir, command) as world:
        world.cluster.add_server("--no-work")
        world.cluster.add_server("--work")
        for _ in range(workers):
            world.cluster.add_worker()
        world.cluster.start()
        yield world


def unleash(world: World, plan: ChaosPlan) -> ChaosReport:
    """Inject faults into a world, let it recover, stop it, and check the result."""
    cluster, history = world.cluster, History()
    client = Client(cluster.servers, history, rng_for(plan.seed))
    try:
        measure_oracle(client, history)
        cluster.watch()
        faults = _inject_faults(world, plan, history)
        end_seconds = _wait_for_all_ends(world)
        observe_all(client, history, cluster.servers)
    finally:
        client.close()
    facts = read_facts(world.url)
    cluster.stop()
    left = find_leftovers(cluster.family, cluster.data_dir)
    return ChaosReport(
        plan,
        [*check(history, facts), *cluster.crashes, *left],
        faults,
        count_endings(facts),
        _count_requests(history),
        Counter(job.attempt for job in facts.jobs),
        world.postgres.has_disk,
        end_seconds,
    )


def _inject_faults(world: World, plan: ChaosPlan, history: History) -> Counter[str]:
    """Run clients and the nemesis at the same time, and return the faults."""
    servers, gates = world.cluster.servers, world.cluster.gates
    load = ChaosLoad(servers, history, plan.seed, plan.clients, plan.most_open)
    nemesis = Nemesis(world, plan.seed, plan.pause_seconds)
    load.start()
    nemesis.start()
    try:
        _wait(plan, nemesis)
    finally:
        nemesis.stop()
        load.stop()
    return nemesis.done + sum((gate.done for gate in gates), Counter())


def _wait_for_all_ends(world: World) -> float:
    """Wait until no job is open, and return how long that took."""
    begun = time.monotonic()
    world.cluster.wait_until_ready()
    wait_until(lambda: not count_open(world), _END_SECONDS)
    return time.monotonic() - begun


def _wait(plan: ChaosPlan, nemesis: Nemesis) -> None:
    """Wait for the planned time, or longer until every kind of fault has happened."""
    soon = time.monotonic() + plan.seconds
    late = max(soon, time.monotonic() + _ROUND_SECONDS)
    while nemesis.is_busy and time.monotonic() < (late if nemesis.rounds == 0 else soon):
        time.sleep(0.1)


def observe_all(client: Client, history: History, servers: Sequence[Member]) -> None:
    """Observe every known job through every server."""
    for job_id in history.acknowledged():
        for server in servers:
            view = client.observe(job_id, 0, server)
            assert view is not None, f"{server.name} returned nothing about {job_id}"
            assert not isinstance(view, Open), f"{server.name} reported {job_id} as open"


def count_open(world: World) -> int:
    question = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
    (row,) = asyncio.run(ask(world.url, question))
    return int(row[0])


def read_facts(url: str) -> JobFacts:
    """Read all jobs and results directly from the database."""

    async def read() -> JobFacts:
        jobs = await ask(url, "SELECT id, idempotency_key, state, attempt, error_kind FROM jobs")
        solutions = await ask(
            url,
            "SELECT id, job_id, error_kind IS NULL AS is_scored, attempt, reward, stdout_tail"
            " FROM solutions",
        )
        return JobFacts(tuple(map(_job, jobs)), tuple(map(_solution, solutions)))

    return asyncio.run(read())


def _job(row: Row[Any]) -> JobFact:
    return JobFact(str(row.id), row.idempotency_key, row.state, row.attempt, row.error_kind)


def _solution(row: Row[Any]) -> SolutionFact:
    status = "scored" if row.is_scored else "failed"
    return SolutionFact(
        str(row.id), str(row.job_id), status, row.attempt, row.reward, row.stdout_tail
    )


def _count_requests(history: History) -> Counter[str]:
    counted = Counter(f"submit {submit.outcome.value}" for submit in history.submits)
    return counted + Counter(
        looks=len(history.looks), cancels=len(history.cancels), batches=len(history.batches)
    )
