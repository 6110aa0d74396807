"""A full queue, thousands who wait, and whoever comes on top: does the server keep its head?

The queue is filled through the API by a few clients, single jobs and batches in turn; then more is
sent than fits, while thousands of connections wait for jobs, and whoever is refused comes back when
he was told to. /livez is asked all along from another process. Client, server, Postgres and the
programs share the machine.

    .venv/bin/python benchmarks/load.py [--minutes 10] [--jobs 16000] [--waiting 2000]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import resource
import statistics
import sys
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field

import uvloop
from pipeline import TASK, warm_up
from server import serving, temporary_folder
from transport import WireMeter
from watching import ProcessWatch, Pulse, Snapshot, bytes_per_minute, pulse

_CLIENTS = 8
_BATCH = 500
_MANY = 50
_WAIT_SECONDS = 60
_SLOWEST_MS = 100.0
_GROWTH_SHARE = 0.05
_PROGRAM = "import time\ntime.sleep({nap})\nprint({number})\n" + "# as long as most\n" * 220


@dataclass(slots=True)
class RequestLoad:
    """What the clients did and heard."""

    port: int
    nap_seconds: float
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    job_ids: deque[str] = field(default_factory=deque)
    statuses: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    answered: int = 0
    came_back: Counter[bool] = field(default_factory=Counter)
    batch_seconds: list[float] = field(default_factory=list)

    def item(self) -> dict[str, object]:
        """Return a program like no other."""
        number = next(self.numbers)
        code = _PROGRAM.format(nap=self.nap_seconds, number=number)
        return {"task_id": TASK, "code": code, "run_id": f"run-{number % 4}"}


async def fill(load: RequestLoad, count: int) -> None:
    """Send so many jobs, half of them in batches."""
    shares = [count // _CLIENTS + (client < count % _CLIENTS) for client in range(_CLIENTS)]
    await asyncio.gather(*(_fill(load, share) for share in shares))


async def _fill(load: RequestLoad, count: int) -> None:
    wire = WireMeter(load.port)
    while count > 0:
        size = min(_BATCH, max(1, count // 2))
        begun = time.monotonic()
        reply = await wire.post("/v1/batches", {"items": [load.item() for _ in range(size)]})
        load.batch_seconds.append((time.monotonic() - begun) / size)
        load.statuses[f"batch {reply.status}"] += 1
        if reply.status == 202:
            load.job_ids.extend(reply.content()["job_ids"])
            load.accepted += size
            count -= size
        for _ in range(min(size, count)):
            count -= await _send(load, wire) is None
    wire.close()


async def _send(
    load: RequestLoad, wire: WireMeter, item: dict[str, object] | None = None
) -> float | None:
    """Send a job and return when to come back, if it was refused."""
    reply = await wire.post("/v1/jobs", item or load.item())
    load.statuses[f"submit {reply.status}"] += 1
    if reply.status == 202:
        load.job_ids.append(reply.content()["job_id"])
        load.accepted += 1
        return None
    return float(reply.headers.get("retry-after", "1"))


async def keep_sending(load: RequestLoad) -> None:
    """Send for ever, and after a refusal come back when told to."""
    wire = WireMeter(load.port)
    while True:
        item = load.item()
        seconds = await _send(load, wire, item)
        while seconds is not None:
            await asyncio.sleep(seconds)
            seconds = await _send(load, wire, item)
            load.came_back[seconds is None] += 1


async def keep_waiting(load: RequestLoad, number: int) -> None:
    """Wait for one job after another, the oldest first; every tenth waits for many at once."""
    wire = WireMeter(load.port)
    while True:
        if not load.job_ids:
            await asyncio.sleep(1)
        elif number % 10 == 0:
            await _wait_for_many(load, wire)
        else:
            await _wait_for_one(load, wire)


async def _wait_for_one(load: RequestLoad, wire: WireMeter) -> None:
    job_id = load.job_ids.popleft()
    status = 202
    while status == 202:
        reply = await wire.get(f"/v1/jobs/{job_id}?wait_seconds={_WAIT_SECONDS}")
        status = reply.status
        load.statuses[f"wait {status}"] += 1
    load.answered += 1


async def _wait_for_many(load: RequestLoad, wire: WireMeter) -> None:
    count = min(_MANY, len(load.job_ids))
    open_ids = {load.job_ids.popleft() for _ in range(count)}
    while open_ids:
        asked = {"job_ids": list(open_ids), "wait_seconds": _WAIT_SECONDS}
        reply = await wire.post("/v1/jobs/wait", asked)
        load.statuses[f"wait for many {reply.status}"] += 1
        if reply.status != 200:
            return
        ended = {one["job_id"] for one in reply.content()["ended"]}
        open_ids -= ended
        load.answered += len(ended)


async def press(
    load: RequestLoad, watch: ProcessWatch, options: argparse.Namespace
) -> tuple[float, float]:
    """Put the server under load and return when it was full and when that was over."""
    looking = asyncio.create_task(watch.keep_looking())
    begun = time.monotonic()
    await fill(load, options.jobs)
    print(f"filled with {load.accepted} jobs in {time.monotonic() - begun:.0f} s", flush=True)
    others = [asyncio.create_task(keep_waiting(load, n)) for n in range(options.waiting)]
    others += [asyncio.create_task(keep_sending(load)) for _ in range(_CLIENTS)]
    full = time.monotonic()
    await asyncio.wait([looking, *others], timeout=60 * options.minutes)
    over = time.monotonic()
    failed = [task for task in (looking, *others) if task.done()]
    for task in (looking, *others):
        task.cancel()
    for task in (looking, *others):
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, OSError):
            await task
    load.statuses["connections lost"] += len(failed)
    return full, over


def show(load: RequestLoad, beats: Pulse, watch: ProcessWatch, full: float, over: float) -> bool:
    """Print the table and return whether all is as it should be."""
    latencies, looks = beats.since(full), watch.since(full)
    settled = watch.since(full + (over - full) / 5)
    minutes = (looks[-1].at - looks[0].at) / 60
    p50, p99 = statistics.median(latencies), latencies[int(0.99 * len(latencies))]
    filling = [took for at, took in beats.took_ms if at < full]
    wrong = {
        what: count
        for what, count in load.statuses.items()
        if count and what.split()[-1] not in {"200", "202", "429"}
    }
    growth = bytes_per_minute(settled)
    share = growth * minutes / statistics.mean(look.server_bytes for look in settled)
    lines: list[tuple[str, str, bool | None]] = [
        ("jobs accepted, answers told", f"{load.accepted}, {load.answered}", None),
        ("a job in a batch", f"{1e3 * statistics.median(load.batch_seconds):.2f} ms", None),
        ("queued, least to most", _span([look.queued for look in looks]), None),
        ("ended a second", f"{_rate([(look.at, look.ended) for look in looks]):.1f}", None),
        ("statuses", ", ".join(f"{k}: {v}" for k, v in sorted(load.statuses.items()) if v), None),
        ("refused, came back and were let in", _kept(load.came_back), None),
        ("errors but 429", str(wrong or "none"), not wrong and not beats.failed),
        (
            "/livez p50, p99, max",
            f"{p50:.1f}, {p99:.1f}, {latencies[-1]:.1f} ms",
            p99 < _SLOWEST_MS,
        ),
        ("/livez while it was filled: p99", f"{_p99(filling):.1f} ms", _p99(filling) < _SLOWEST_MS),
        ("server's memory", _span([look.server_bytes / 2**20 for look in looks]) + " MiB", None),
        ("its slope", f"{growth / 2**20:+.2f} MiB a minute ({share:+.1%})", share < _GROWTH_SHARE),
        ("cores used: server, Postgres, all", _cores(looks), None),
        ("database connections", _span([look.connections for look in looks]), None),
        ("of these at work", _span([look.busy_connections for look in looks]), None),
    ]
    for name, value, is_good in lines:
        verdict = "" if is_good is None else ("ok" if is_good else "NOT AS IT SHOULD BE")
        print(f"{name:36}{value:44}{verdict}")
    return all(is_good is not False for _, _, is_good in lines)


def _cores(looks: list[Snapshot]) -> str:
    """Return how much of the machine was at work; what neither has used is programs and others."""
    rates = [
        _rate([(look.at, getattr(look, name)) for look in looks])
        for name in ("server_seconds", "database_seconds", "machine_seconds")
    ]
    return ", ".join(f"{rate:.2f}" for rate in rates)


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * len(values))] if values else 0.0


def _span(values: list[float] | list[int]) -> str:
    return f"{min(values):.0f} to {max(values):.0f}"


def _rate(points: list[tuple[float, float]]) -> float:
    (first, before), (last, now) = points[0], points[-1]
    return (now - before) / (last - first)


def _kept(came_back: Counter[bool]) -> str:
    return f"{came_back[True]} of {came_back.total()}"


def main() -> None:
    """Run the load and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=16_000)
    parser.add_argument("--waiting", type=int, default=2_000)
    parser.add_argument("--nap-seconds", type=float, default=0.05)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with temporary_folder() as parent:
        extra = {"REWARD_SERVER_SANDBOX__SLOTS": "2"}
        with serving(parent / "data", extra=extra) as server:
            warm_up(server.port)
            load = RequestLoad(server.port, options.nap_seconds)
            watch = ProcessWatch(server.pid, server.port, parent / "data")
            with pulse(server.port) as beats:
                full, over = uvloop.run(press(load, watch, options))
            is_good = show(load, beats, watch, full, over)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
