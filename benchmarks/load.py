"""Load test: a full queue, thousands of waiting connections, and more jobs than fit.

A few clients fill the queue through the API, with single jobs and batches in turn. Then they send
more than fits and retry when the server says so, while thousands of connections wait for jobs.
Another process probes /livez all the time. Client, server, Postgres and programs share the machine.

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
    """What the clients sent and received."""

    port: int
    nap_seconds: float
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    job_ids: deque[str] = field(default_factory=deque)
    statuses: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    answered: int = 0
    retries: Counter[bool] = field(default_factory=Counter)
    batch_seconds: list[float] = field(default_factory=list)

    def item(self) -> dict[str, object]:
        """Return an item with a unique program."""
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
    """Send a job; return after how many seconds to retry if it was refused."""
    reply = await wire.post("/v1/jobs", item or load.item())
    load.statuses[f"submit {reply.status}"] += 1
    if reply.status == 202:
        load.job_ids.append(reply.content()["job_id"])
        load.accepted += 1
        return None
    return float(reply.headers.get("retry-after", "1"))


async def keep_sending(load: RequestLoad) -> None:
    """Send jobs forever, and retry a refused one when the server says so."""
    wire = WireMeter(load.port)
    while True:
        item = load.item()
        seconds = await _send(load, wire, item)
        while seconds is not None:
            await asyncio.sleep(seconds)
            seconds = await _send(load, wire, item)
            load.retries[seconds is None] += 1


async def keep_waiting(load: RequestLoad, number: int) -> None:
    """Wait for one job after another, oldest first; every tenth client waits for many at once."""
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
        body = {"job_ids": list(open_ids), "wait_seconds": _WAIT_SECONDS}
        reply = await wire.post("/v1/jobs/wait", body)
        load.statuses[f"wait for many {reply.status}"] += 1
        if reply.status != 200:
            return
        ended = {one["job_id"] for one in reply.content()["ended"]}
        open_ids -= ended
        load.answered += len(ended)


async def apply_load(
    load: RequestLoad, watch: ProcessWatch, options: argparse.Namespace
) -> tuple[float, float]:
    """Put the server under load; return when its queue was full and when the load ended."""
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
    """Print the table and return whether all bounds hold."""
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
        ("jobs accepted, answers received", f"{load.accepted}, {load.answered}", None),
        ("a job in a batch", f"{1e3 * statistics.median(load.batch_seconds):.2f} ms", None),
        ("queued, least to most", _span([look.queued for look in looks]), None),
        ("ended a second", f"{_rate([(look.at, look.ended) for look in looks]):.1f}", None),
        ("statuses", ", ".join(f"{k}: {v}" for k, v in sorted(load.statuses.items()) if v), None),
        ("retries that were accepted", _kept(load.retries), None),
        ("errors other than 429", str(wrong or "none"), not wrong and not beats.failed),
        (
            "/livez p50, p99, max",
            f"{p50:.1f}, {p99:.1f}, {latencies[-1]:.1f} ms",
            p99 < _SLOWEST_MS,
        ),
        ("/livez while filling: p99", f"{_p99(filling):.1f} ms", _p99(filling) < _SLOWEST_MS),
        ("server's memory", _span([look.server_bytes / 2**20 for look in looks]) + " MiB", None),
        ("its slope", f"{growth / 2**20:+.2f} MiB a minute ({share:+.1%})", share < _GROWTH_SHARE),
        ("cores used: server, Postgres, all", _cores(looks), None),
        ("database connections", _span([look.connections for look in looks]), None),
        ("of these busy", _span([look.busy_connections for look in looks]), None),
    ]
    for name, value, is_good in lines:
        verdict = "" if is_good is None else ("ok" if is_good else "OUT OF BOUNDS")
        print(f"{name:36}{value:44}{verdict}")
    return all(is_good is not False for _, _, is_good in lines)


def _cores(looks: list[Snapshot]) -> str:
    """Return the cores that the server, Postgres and the whole machine used."""
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


def _kept(retries: Counter[bool]) -> str:
    return f"{retries[True]} of {retries.total()}"


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
                full, over = uvloop.run(apply_load(load, watch, options))
            is_good = show(load, beats, watch, full, over)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
