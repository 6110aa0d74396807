"""The overhead of the server over a bare process, measured side by side in one run.

The same program runs three ways in turns, so that a noisy machine disturbs all alike: plain
`python`, the same bubblewrap sandbox without a server, and `POST /score`. The CPU time is the whole
machine's (server, Postgres, sandbox and client together), from /proc/stat. Compare ratios, not
seconds. `--against` adds the server of another checkout, for a ratio before and after a change.

    .venv/bin/python benchmarks/pipeline.py [--rounds 40] [--json] [--against CHECKOUT]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server import running_server, temporary_folder

from reward_server.sandbox.bubblewrap import command
from reward_server.sandbox.bubblewrap.binary import find_bubblewrap
from reward_server.sandbox.payload import INSIDE, build_environment
from reward_server.sandbox.seccomp import build_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parent.parent
TASK = "spooky-author-identification"
CLIENTS = 8
SCORE, OTHER = "POST /score", "the other"
PROGRAMS = {
    "print(1)": "print(1)\n",
    "scikit-learn": """
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(200, 5)))
y = (X[0] + X[1] > 0).astype(int)
model = LogisticRegression().fit(X, y)
print(model.score(X, y))
""",
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run a program."""

    name: str
    run: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one way per program."""

    wall_ms: float
    cpu_ms: float


def busy_seconds() -> float:
    """Return the CPU seconds the machine has spent on anything but idling."""
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK")


def bare_python(file: Path) -> Callable[[], None]:
    """Return a runner of a file in the programs' Python."""
    python = command.find_interpreter(ROOT / ".venv-sandbox").python
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin"}
    return lambda: _run([str(python), str(file)], environment)


def bare_bubblewrap(file: Path) -> Callable[[], None]:
    """Return a runner of a file in the box the server makes, without the server."""
    interpreter = command.find_interpreter(ROOT / ".venv-sandbox")
    sources = command.Sources(
        str(find_bubblewrap().path),
        environment=str(interpreter.environment),
        base=str(interpreter.base),
        inside=str(file.parent),
        etc=str(file.parent),
    )
    line = command.build_command(sources, interpreter, TASK, str(file.parent), 64 << 20)
    line[-1] = f"{INSIDE}/{file.name}"
    line[line.index("--seccomp") + 1] = "{filter}"
    environment = build_environment(1)

    def run() -> None:
        end, start = os.pipe()
        os.write(start, build_filter())
        os.close(start)
        try:
            _run([part.replace("{filter}", str(end)) for part in line], environment, (end,))
        finally:
            os.close(end)

    return run


def _run(line: list[str], environment: dict[str, str], fds: tuple[int, ...] = ()) -> None:
    done = subprocess.run(
        line,
        env=environment,
        pass_fds=fds,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{line[0]} failed: {done.stderr.decode()}")


def post_score(port: int, code: str, **fields: object) -> Callable[[], dict[str, Any]]:
    """Return a runner that scores a program through the server and returns its answer."""
    body = json.dumps({"task_id": TASK, "code": code, **fields})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)

    def run() -> dict[str, Any]:
        connection.request("POST", "/score", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        if response.status != 200:
            sys.exit(f"the server said {response.status}: {text.decode()}")
        answer: dict[str, Any] = json.loads(text)
        return answer

    return run


def warm_up(port: int) -> None:
    """Use every part of the server once, graders too, and wait until the machine is idle."""
    sample = f"/workdir/{TASK}/prepared/public/sample_submission.csv"
    code = f"import shutil\nshutil.copy({sample!r}, 'submission.csv')\n"
    with ThreadPoolExecutor(CLIENTS) as pool:
        for future in [pool.submit(post_score(port, code)) for _ in range(2 * CLIENTS)]:
            future.result()
    for _ in range(60):
        before = busy_seconds()
        time.sleep(0.5)
        if busy_seconds() - before < 0.05:
            return


def measure(ways: list[Way], rounds: int) -> dict[str, Cost]:
    """Run the ways in turns, some programs each turn, and return the cost of each."""
    walls: dict[str, list[float]] = {way.name: [] for way in ways}
    cpus: dict[str, list[float]] = {way.name: [] for way in ways}
    per_turn = 5
    for _ in range(max(1, rounds // per_turn)):
        for way in ways:
            before = busy_seconds()
            for _ in range(per_turn):
                begun = time.perf_counter()
                way.run()
                walls[way.name].append(time.perf_counter() - begun)
            cpus[way.name].append((busy_seconds() - before) / per_turn)
    return {
        way.name: Cost(
            1e3 * statistics.median(walls[way.name]), 1e3 * statistics.median(cpus[way.name])
        )
        for way in ways
    }


def measure_rate(
    make: Callable[[], Callable[[], object]], count: int, clients: int = CLIENTS
) -> float:
    """Return how many programs per second some clients complete."""
    runners = [make() for _ in range(clients)]

    def client(run: Callable[[], object]) -> int:
        for _ in range(max(1, count // clients)):
            run()
        return max(1, count // clients)

    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        done = sum(pool.map(client, runners))
    return done / (time.perf_counter() - begun)


def measure_program(
    name: str, code: str, folder: Path, ports: Mapping[str, int], rounds: int
) -> dict[str, object]:
    """Measure one program all ways."""
    file = folder / f"{abs(hash(name))}.py"
    file.write_text(code)
    ways = [
        Way("python", bare_python(file)),
        Way("bubblewrap", bare_bubblewrap(file)),
        *(Way(server, post_score(port, code)) for server, port in ports.items()),
    ]
    costs = measure(ways, rounds)
    makers: dict[str, Callable[[], Callable[[], object]]] = {
        "bubblewrap": lambda: bare_bubblewrap(file),
        **{server: partial(post_score, port, code) for server, port in ports.items()},
    }
    rates: dict[str, list[float]] = {way: [] for way in makers}
    count = CLIENTS * max(1, min(12, round(500 / costs["bubblewrap"].wall_ms)))
    for _ in range(3):
        for way, make in makers.items():
            rates[way].append(measure_rate(make, count))
    rate = {way: statistics.median(measured) for way, measured in rates.items()}
    return {
        "program": name,
        "wall_ms": {way: round(cost.wall_ms, 2) for way, cost in costs.items()},
        "cpu_ms": {way: round(cost.cpu_ms, 2) for way, cost in costs.items()},
        "added_cpu_ms": round(costs[SCORE].cpu_ms - costs["bubblewrap"].cpu_ms, 2),
        "rate_8_clients": {way: round(rate[way], 2) for way in rate},
        "rate_ratio": round(rate[SCORE] / rate["bubblewrap"], 3),
    }


def show(result: dict[str, Any]) -> None:
    """Print one program's table."""
    wall, cpu, rate = result["wall_ms"], result["cpu_ms"], result["rate_8_clients"]
    print(f"\n{result['program']}")
    print(f"{'':14}{'wall ms':>10}{'x python':>10}{'cpu ms':>10}{'rate/s, 8 clients':>20}")
    for way in wall:
        ratio = wall[way] / wall["python"]
        shown = f"{rate[way]:.1f}" if way in rate else "-"
        print(f"{way:14}{wall[way]:>10.1f}{ratio:>10.2f}{cpu[way]:>10.1f}{shown:>20}")
    print(
        f"added by the server: {result['added_cpu_ms']} ms CPU a request; "
        f"{result['rate_ratio']:.0%} of the bare rate"
    )
    if OTHER in wall:
        print(
            f"this checkout / the other: {wall[SCORE] / wall[OTHER]:.2f} x the latency, "
            f"{rate[SCORE] / rate[OTHER]:.2f} x the rate"
        )


def main() -> None:
    """Measure every program and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--only", help="measure this program alone")
    parser.add_argument(
        "--against", type=Path, help="a checkout with its own environments, measured in turns"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with temporary_folder() as parent, ExitStack() as servers:
        ports = {SCORE: servers.enter_context(running_server(parent / "data", options.port))}
        if options.against:
            other = running_server(parent / "other", checkout=options.against.resolve())
            ports[OTHER] = servers.enter_context(other)
        for port in ports.values():
            warm_up(port)
        folder = parent / "programs"
        folder.mkdir(mode=0o755)
        results = [
            measure_program(title, code, folder, ports, options.rounds)
            for title, code in PROGRAMS.items()
            if options.only in (None, title)
        ]
    for result in results:
        print(json.dumps(result)) if options.json else show(result)


if __name__ == "__main__":
    main()
