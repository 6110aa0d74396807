"""How true durations stay under load: one program alone, and one in every slot at once.

The program is single-threaded and fits a forest for about three seconds. Alone and busy runs of
every kind take turns; the ratio of their median `duration_seconds` should be near 1 (at most 1.05
on a machine that has nothing else to do). Bare processes, pinned to a core each, show what of it
is the machine's own: cores share caches and memory. Runs that the server itself flags as contended
are counted: they say that something outside of the server was at work.

    .venv/bin/python benchmarks/fidelity.py [--kinds bubblewrap] [--rounds 20] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinds import add_kinds, servers_of
from pipeline import ROOT, post_score

from reward_server.sandbox.bubblewrap.command import build_environment, find_interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

    from server import Server

PROGRAM = """
import numpy as np
from sklearn.ensemble import RandomForestClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 20))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
model = RandomForestClassifier(n_estimators=180, n_jobs=1, random_state=0).fit(X, y)
print(model.score(X, y))
"""


def run_together(server: Server, count: int) -> list[dict[str, Any]]:
    """Have that many copies scored at once and return their answers."""
    runners = [post_score(server.port, PROGRAM) for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda run: run(), runners))


def run_bare(file: Path, count: int) -> list[dict[str, Any]]:
    """Run that many bare copies at once, each on a core of its own, and time them."""
    python = str(find_interpreter(ROOT / ".venv-sandbox").python)
    cores = sorted(os.sched_getaffinity(0))[:count]

    def run(core: int) -> dict[str, Any]:
        begun = time.monotonic()
        line = ["taskset", "--cpu-list", str(core), python, str(file)]
        with subprocess.Popen(line, env=build_environment(1), stdout=subprocess.DEVNULL) as process:
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
        return {
            "duration_seconds": time.monotonic() - begun,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "sandbox": {"contended": False},
        }

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, cores))


def measure(
    servers: dict[str, Server], file: Path, rounds: int, slots: int
) -> dict[str, dict[str, float]]:
    """Return the medians of each kind alone and with all slots busy."""
    runners: dict[str, Callable[[int], list[dict[str, Any]]]] = {
        "python": partial(run_bare, file),
        **{kind: partial(run_together, server) for kind, server in servers.items()},
    }
    alone: dict[str, list[dict[str, Any]]] = {kind: [] for kind in runners}
    busy: dict[str, list[dict[str, Any]]] = {kind: [] for kind in runners}
    for _ in range(rounds):
        for kind, run in runners.items():
            alone[kind] += run(1)
            busy[kind] += run(slots)
    return {kind: _compare(alone[kind], busy[kind]) for kind in runners}


def _compare(alone: list[dict[str, Any]], busy: list[dict[str, Any]]) -> dict[str, float]:
    seconds = [statistics.median(a["duration_seconds"] for a in runs) for runs in (alone, busy)]
    cpu = [statistics.median(a["cpu_seconds"] for a in runs) for runs in (alone, busy)]
    return {
        "alone_seconds": round(seconds[0], 3),
        "busy_seconds": round(seconds[1], 3),
        "ratio": round(seconds[1] / seconds[0], 3),
        "cpu_ratio": round(cpu[1] / cpu[0], 3),
        "contended_alone": _flagged(alone),
        "contended_busy": _flagged(busy),
    }


def _flagged(runs: list[dict[str, Any]]) -> float:
    return round(sum(run["sandbox"]["contended"] for run in runs) / len(runs), 3)


def main() -> None:
    """Measure every kind and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_kinds(parser)
    options = parser.parse_args()
    slots = len(os.sched_getaffinity(0))
    with servers_of(options.kinds) as (folder, servers):
        file = folder / "forest.py"
        file.write_text(PROGRAM)
        results = measure(servers, file, options.rounds, slots)
    columns = list(next(iter(results.values())))
    print(f"{slots} slots\n{'':12}" + "".join(f"{column:>18}" for column in columns))
    for kind, numbers in results.items():
        print(f"{kind:12}" + "".join(f"{numbers[column]:>18}" for column in columns))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
