"""What each kind of sandbox costs through `POST /score`, against bare `python` in the same run.

Two programs: a small one with pandas and scikit-learn, for its latency, its rate with all slots
busy and its CPU; and `print(1)`, for the CPU that a request adds and the rate with eight clients.
Bare processes and servers run in turns, so that a noisy machine disturbs them alike; ratios are
what to look at. CPU is that of the whole machine: run it alone.

    .venv/bin/python benchmarks/sandbox.py [--kinds bubblewrap] [--rounds 20] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from kinds import add_kinds, servers_of
from pipeline import CLIENTS, PROGRAMS, Way, bare_python, measure, measure_rate, post_score

if TYPE_CHECKING:
    from collections.abc import Callable

    from server import Server

_TURNS = 3
_TURN_MS = 2000.0


def measure_rates(
    makers: dict[str, Callable[[], Callable[[], object]]],
    clients: dict[str, int],
    count: int,
) -> dict[str, float]:
    """Return the median rate of each way, taken in turns."""
    rates: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(_TURNS):
        for name, make in makers.items():
            rates[name].append(measure_rate(make, count, clients[name]))
    return {name: statistics.median(found) for name, found in rates.items()}


def measure_program(
    name: str, folder: Path, servers: dict[str, Server], rounds: int
) -> dict[str, object]:
    """Measure one program bare and on every server."""
    code, file = PROGRAMS[name], folder / "program.py"
    file.write_text(code)
    makers: dict[str, Callable[[], Callable[[], object]]] = {"python": lambda: bare_python(file)}
    for kind, server in servers.items():
        makers[kind] = lambda port=server.port: post_score(port, code)  # type: ignore[misc]
    costs = measure([Way(way, make()) for way, make in makers.items()], rounds)
    # A server is kept busy by a short line of programs; bare processes are as many as slots.
    slots = len(os.sched_getaffinity(0))
    clients = dict.fromkeys(makers, CLIENTS if name == "print(1)" else 2 * slots)
    if name != "print(1)":
        clients["python"] = slots
    count = CLIENTS * max(1, round(slots * _TURN_MS / costs["python"].wall_ms / CLIENTS))
    rates = measure_rates(makers, clients, count)
    return {way: _compare(costs, rates, clients, way) for way in makers}


def _compare(costs: dict, rates: dict, clients: dict, way: str) -> dict[str, float]:  # type: ignore[type-arg]
    cost, bare = costs[way], costs["python"]
    return {
        "wall_ms": round(cost.wall_ms, 2),
        "wall_ratio": round(cost.wall_ms / bare.wall_ms, 3),
        "cpu_ms": round(cost.cpu_ms, 2),
        "added_cpu_ms": round(cost.cpu_ms - bare.cpu_ms, 2),
        "clients": clients[way],
        "rate": round(rates[way], 2),
        "rate_ratio": round(rates[way] / rates["python"], 3),
    }


def show(program: str, result: dict) -> None:  # type: ignore[type-arg]
    """Print one program's table."""
    columns = ["wall_ms", "wall_ratio", "cpu_ms", "added_cpu_ms", "clients", "rate", "rate_ratio"]
    print(f"\n{program}\n{'':12}" + "".join(f"{column:>14}" for column in columns))
    for way, numbers in result.items():
        print(f"{way:12}" + "".join(f"{numbers[column]:>14}" for column in columns))


def main() -> None:
    """Measure both programs with every kind and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_kinds(parser)
    options = parser.parse_args()
    with servers_of(options.kinds) as (folder, servers):
        results = {
            name: measure_program(name, folder, servers, options.rounds) for name in PROGRAMS
        }
    for name, result in results.items():
        show(name, result)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
