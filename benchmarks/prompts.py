"""The latency of prompts and best-of-task lists as the store grows, over HTTP on one machine.

Fills an embedded Postgres with made-up solutions, first few, then many, and asks a real server
for 128 prompts at a time by every strategy, and for the best solution of a task. Times are the
client's; on a busy machine look at `cpu`, the CPU time of the server's process.

    .venv/bin/python benchmarks/prompts.py [--few 10000] [--many 1000000] [--rounds 60] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import importlib
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server import ROOT, serving, temporary_folder
from sqlalchemy import text

from reward_server.store.engine import make_engine, upgrade
from reward_server.store.postgres.embedded import embedded_postgres
from reward_server.tasks.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    Ask = Callable[[http.client.HTTPConnection, int], None]

sys.path.append(str(ROOT))
many = importlib.import_module("tests.integration.prompts.many_solutions")
bpe = importlib.import_module("tests.support.bpe")

PROMPTS = 128
PROMPTS_MS, LIST_MS, GROWTH = 50.0, 10.0, 2.0
_SOLUTIONS = ROOT / "tests" / "integration" / "api" / "solutions"
_TOKENIZER = {"REWARD_SERVER_PROMPTS__TOKENIZERS": '{{"bpe": "{path}"}}'}


@dataclass(frozen=True, slots=True)
class PromptQuestion:
    """One request, and how long it may take; None if its time is only reported."""

    name: str
    ask: Ask
    most_ms: float | None


@dataclass(frozen=True, slots=True)
class Times:
    """The time of one request, in milliseconds."""

    p50: float
    p95: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Line:
    """What one question took with few and with many solutions."""

    name: str
    few: Times
    many: Times
    most_ms: float | None

    @property
    def growth(self) -> float:
        """Return how much longer it takes, at the median."""
        return self.many.p50 / self.few.p50

    @property
    def verdict(self) -> str:
        """Return whether it is as fast as it should be."""
        if self.most_ms is None:
            return "-"
        return "ok" if self.many.p95 <= self.most_ms and self.growth <= GROWTH else "MISSED"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with temporary_folder() as folder:
        few = _measure(folder, 0, given.few, given.rounds)
        many_found = _measure(folder, given.few, given.many, given.rounds)
    lines = [_line(name, times, many_found[name]) for name, times in few.items()]
    if given.json:
        print(json.dumps([asdict(line) | {"verdict": line.verdict} for line in lines]))
        return
    print(f"\nmilliseconds with {given.few:,} and {given.many:,} solutions")
    print(f"{'':28}" + 2 * f" {'p50':>7} {'p95':>7} {'cpu':>7}" + f" {'growth':>7}")
    for line in lines:
        numbers = [*asdict(line.few).values(), *asdict(line.many).values()]
        shown = " ".join(f"{number:7.1f}" for number in numbers)
        print(f"{line.name:28} {shown} {line.growth:6.2f}x {line.verdict}")


def _line(name: str, few: Times, many_times: Times) -> Line:
    limits = {question.name: question.most_ms for question in _questions("", "", 0)}
    return Line(name, few, many_times, limits[name])


def _measure(folder: Path, first: int, last: int, repetitions: int) -> dict[str, Times]:
    tokenizer = _train(folder / "tokenizer")
    extra = {name: form.format(path=tokenizer) for name, form in _TOKENIZER.items()}
    extra["REWARD_SERVER_SANDBOX__SLOTS"] = "1"
    with serving(folder, extra=extra) as server:
        asyncio.run(_fill(folder, first, last))
        task_id, run_id, step = _place(folder)
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        found: dict[str, Times] = {}
        for question in _questions(task_id, run_id, step):
            question.ask(connection, 0)
            before = _cpu_ms(server.pid)
            times = [_time(question, connection, at) for at in range(repetitions)]
            cpu = (_cpu_ms(server.pid) - before) / repetitions
            median, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            found[question.name] = Times(median, p95, cpu)
        return found


def _cpu_ms(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _time(question: PromptQuestion, connection: http.client.HTTPConnection, seed: int) -> float:
    began = time.perf_counter()
    question.ask(connection, seed)
    return 1000 * (time.perf_counter() - began)


def _questions(task_id: str, run_id: str, step: int) -> list[PromptQuestion]:
    body = {"task_id": task_id, "run_id": run_id, "n": PROMPTS, "step": step}
    tokens = {"budget": {"tokens": 1024, "tokenizer": "bpe"}}
    wide = {"budget": {"tokens": 4096, "tokenizer": "bpe"}}
    return [
        PromptQuestion("prompts previous_step", _post(body), PROMPTS_MS),
        *(
            PromptQuestion(
                f"prompts {name} of {scope}", _post(body, strategy=name, scope=scope), PROMPTS_MS
            )
            for name in ("best", "softmax", "diverse")
            for scope in ("run", "task")
        ),
        PromptQuestion("prompts of failed ones too", _post(body, parents="any"), PROMPTS_MS),
        PromptQuestion("prompts in 1,024 tokens", _post(body, **tokens), None),
        PromptQuestion("prompts in 4,096 tokens", _post(body, **wide), None),
        PromptQuestion("best of task", _get(f"task_id={task_id}&order=reward&limit=1"), LIST_MS),
        PromptQuestion(
            "best valid", _get(f"task_id={task_id}&valid=true&order=reward&limit=1"), LIST_MS
        ),
    ]


def _post(body: dict[str, Any], **more: object) -> Ask:
    def ask(connection: http.client.HTTPConnection, seed: int) -> None:
        content = json.dumps(body | more | {"seed": seed})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/prompts", content, headers)
        _read(connection)

    return ask


def _get(query: str) -> Ask:
    def ask(connection: http.client.HTTPConnection, _seed: int) -> None:
        connection.request("GET", f"/v1/solutions?{query}")
        _read(connection)

    return ask


def _read(connection: http.client.HTTPConnection) -> None:
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        sys.exit(f"the server said {response.status}: {content.decode()}")


def _tasks(folder: Path) -> list[tuple[str, str]]:
    return [(task.card.id, task.data_digest) for task in Registry(folder).prepared()]


def _place(folder: Path) -> tuple[str, str, int]:
    """Return task, run and next step of the first run, which is whole at any size."""
    return _tasks(folder)[0][0], "run-0", many.RUN_STEPS


async def _fill(folder: Path, first: int, last: int) -> None:
    program = (_SOLUTIONS / "spooky-author-identification.py").read_text()
    began = time.monotonic()
    with embedded_postgres(folder) as url:
        engine = make_engine(url, command_seconds=None)
        await upgrade(engine)
        await many.fill(engine, first, last, _tasks(folder), program)
        async with engine.connect() as connection:
            size = "SELECT pg_size_pretty(pg_total_relation_size('solutions'))"
            total = (await connection.execute(text(size))).scalar_one()
        await engine.dispose()
    print(f"{last - first:,} solutions made in {time.monotonic() - began:.0f} s, {total} in all")


def _train(folder: Path) -> Path:
    """Make a small tokenizer from programs of ours."""
    return bpe.train(folder, (path.read_text() for path in (ROOT / "tests").rglob("*.py")))


if __name__ == "__main__":
    main()
