"""Clients that submit, resubmit, poll, wait, cancel and make batches, all at random."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from tests.integration.chaos.client import Client
from tests.integration.chaos.history import Answered, Open
from tests.integration.chaos.programs import (
    FAILURES,
    LEVELS,
    Expected,
    crashing,
    draw,
    rng_for,
    submitting,
    unreadable,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.integration.chaos.history import History
    from tests.integration.chaos.programs import Program
    from tests.integration.chaos.world.cluster import Member

_RETRIES = 4


class ChaosLoad:
    """Threads that send requests to some servers until they are stopped."""

    def __init__(
        self, servers: Sequence[Member], history: History, seed: int, clients: int, most_open: int
    ) -> None:
        self._servers = servers
        self._history = history
        self._most_open = most_open
        self._stopped = threading.Event()
        self._known: dict[str, str] = {}
        self._open: dict[str, str] = {}
        self._lock = threading.Lock()
        self._seed = seed
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._work, args=(number,)) for number in range(clients)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _work(self, number: int) -> None:
        rng = rng_for(self._seed, f"client {number}")
        client, count = Client(self._servers, self._history, rng), 0
        try:
            while not self._stopped.is_set():
                count += 1
                self._act(client, rng, f"k{self._seed}x{number}x{count}")
                time.sleep(rng.uniform(0, 0.03))
        except BaseException as failure:  # noqa: BLE001 - raised where it is waited for
            self._failures.append(failure)
        finally:
            client.close()

    def _act(self, client: Client, rng: random.Random, key: str) -> None:
        dice, known = rng.random(), self._draw_known(rng)
        if known is None or dice < 0.35:
            if len(self._open) < self._most_open:
                self._send(client, key, draw(rng, key))
            elif known is not None:
                self._observe(client, rng, known)
        elif dice < 0.45:
            self._send(client, known, self._history.programs[known])
        elif dice < 0.50:
            client.submit(known, crashing(f"{key}other"))
        elif dice < 0.55:
            client.cancel(known, self._known[known])
        elif dice < 0.62 and len(self._open) < self._most_open:
            self._send_batch(client, rng, key)
        else:
            self._observe(client, rng, known)

    def _send(self, client: Client, key: str, program: Program) -> None:
        self._history.programs[key] = program
        for _ in range(_RETRIES):
            job_id = client.submit(key, program)
            if job_id is not None:
                with self._lock:
                    self._known[key] = self._open[key] = job_id
                return

    def _send_batch(self, client: Client, rng: random.Random, key: str) -> None:
        items = {f"{key}b{n}": draw(rng, f"{key}b{n}") for n in range(rng.randint(2, 5))}
        self._history.programs.update(items)
        least, cancels_rest = rng.randint(1, len(items)), rng.random() < 0.3
        for _ in range(_RETRIES):
            sent = client.submit_batch(items, least, cancels_rest=cancels_rest)
            if sent is None:
                continue
            batch_id, job_ids = sent
            with self._lock:
                self._known.update(zip(items, job_ids, strict=True))
                self._open.update(zip(items, job_ids, strict=True))
            for _ in range(_RETRIES):
                if client.observe_batch(batch_id, job_ids, least, rng.uniform(0, 2)) is not None:
                    return
            return

    def _observe(self, client: Client, rng: random.Random, known: str) -> None:
        with self._lock:
            open_keys = rng.sample(list(self._open), min(8, len(self._open)))
        if rng.random() < 0.3 and open_keys:
            client.wait_for_any([self._known[key] for key in open_keys], rng.uniform(0, 1))
            return
        key = open_keys[0] if open_keys and rng.random() < 0.7 else known
        view = client.observe(self._known[key], rng.uniform(0, 0.5))
        if view is not None and not isinstance(view, Open):
            with self._lock:
                self._open.pop(key, None)

    def _draw_known(self, rng: random.Random) -> str | None:
        with self._lock:
            return rng.choice(list(self._known)) if self._known else None


def measure_oracle(client: Client, history: History) -> dict[str, Expected]:
    """Run every kind of program once without faults, and return what each earns."""
    programs = [submitting(level, f"oracle{n}") for n, level in enumerate(LEVELS)]
    programs += [crashing("oraclecrash"), unreadable("oracleunreadable")]
    jobs: dict[str, str] = {}
    for number, program in enumerate(programs):
        job_id = client.submit(f"oracle-{number}", program)
        assert job_id is not None
        jobs[program.kind] = job_id
    oracle = {}
    for kind, job_id in jobs.items():
        view = client.observe(job_id, 60)
        assert isinstance(view, Answered), view
        assert view.attempt == 1
        oracle[kind] = Expected(view.status, view.reward)
    rewards = [oracle[program.kind].reward for program in programs[: len(LEVELS)]]
    assert len(set(rewards)) == len(LEVELS)
    assert {kind: oracle[kind] for kind in FAILURES} == FAILURES
    history.oracle = oracle
    return oracle
