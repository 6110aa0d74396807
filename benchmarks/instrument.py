"""Precision and recall of the markers over the labelled corpus, and the cost of placing them.

    .venv/bin/python benchmarks/instrument.py [--split heldout] [--programs N] [--json FILE]
    .venv/bin/python benchmarks/instrument.py --url http://127.0.0.1:8001/v1 --model NAME
        [--mode insert|rewrite|both] [--merge] [--concurrency 8]
    .venv/bin/python benchmarks/instrument.py --throughput [--latency-seconds 2]

Without `--url` only the static analyzer is measured. With it the language model is too: `served`
are the markers a program would run with (the static analyzer's where the model's answer was
refused), `alone` are the model's own, none where it was refused. What counts as right is said in
`tests/unit/instrument/labelled.py`. `--throughput` needs no model: it shows how long slots stand
idle while programs wait for a slow one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextvars
import importlib
import json
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefetching import measure_waiting
from right_answers import right_ratio

from reward_server.instrument.lm.endpoint import LmEndpoint
from reward_server.instrument.lm.instrumenter import LmInstrumenter
from reward_server.instrument.lm.prompts import Mode
from reward_server.instrument.parser import StaticInstrumenter
from reward_server.model import Milestone, Program

if TYPE_CHECKING:
    from reward_server.instrument.base import Instrumenter
    from reward_server.instrument.lm.prompts import LmRequest
    from reward_server.instrument.lm.reply import LmReply
    from reward_server.model import Marker

sys.path.append(str(Path(__file__).parent.parent / "tests" / "unit" / "instrument"))
labelled = importlib.import_module("labelled")
_REPLIES: contextvars.ContextVar[list[LmReply]] = contextvars.ContextVar("replies")


class CountingEndpoint(LmEndpoint):
    """Keeps what was answered for the program that is being measured."""

    async def ask(self, question: LmRequest) -> LmReply:
        """Return the reply, and remember it."""
        reply = await super().ask(question)
        _REPLIES.get().append(reply)
        return reply


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of one program."""

    program: Any
    markers: tuple[Marker, ...]
    kind: str
    reason: str | None
    seconds: float
    replies: tuple[LmReply, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One way of placing markers, measured over the corpus."""

    name: str
    measured: list[Measured]
    alone: bool = False
    tally: Any = field(init=False)

    def __post_init__(self) -> None:
        answers = [
            (one.program, () if self.alone and one.kind == "static" else one.markers)
            for one in self.measured
        ]
        object.__setattr__(self, "tally", labelled.compare(answers))

    @property
    def numbers(self) -> dict[str, Any]:
        """Return everything that is printed, for a file."""
        seconds = [one.seconds for one in self.measured]
        return {
            "programs": len(self.measured),
            "precision": self.tally.precision(),
            "recall": self.tally.recall(),
            "milestones": {
                milestone.label: {
                    "precision": self.tally.precision(milestone),
                    "recall": self.tally.recall(milestone),
                }
                for milestone in Milestone
            },
            "prompt_tokens": statistics.mean(self.tokens("prompt_tokens")),
            "completion_tokens": statistics.mean(self.tokens()),
            "seconds_median": statistics.median(seconds),
            "seconds_p95": sorted(seconds)[int(0.95 * (len(seconds) - 1))],
            "refused": sum(self.refusals.values()) / len(self.measured),
            "refusals": dict(self.refusals.most_common()),
        }

    def tokens(self, name: str = "completion_tokens") -> list[int]:
        """Return how many tokens each program cost; none where no answer came."""
        return [sum(getattr(reply, name) for reply in one.replies) for one in self.measured]

    @property
    def refusals(self) -> Counter[str]:
        """Count the reasons why the static analyzer replaced the model."""
        if not any(one.replies for one in self.measured) and self.name == "static":
            return Counter()
        return Counter(one.reason or "unknown" for one in self.measured if one.kind == "static")


async def place_all(
    name: str, instrumenter: Instrumenter, programs: list[Any], concurrency: int
) -> ResultRow:
    """Have the markers of every program placed, some at a time."""
    at_once = asyncio.Semaphore(concurrency)

    async def place(program: Any) -> Measured:  # noqa: ANN401 - the corpus is no package
        async with at_once:
            replies: list[LmReply] = []
            _REPLIES.set(replies)
            begun = time.perf_counter()
            done = await instrumenter.instrument(Program(program.code))
            seconds = time.perf_counter() - begun
        by = done.instrumentation
        return Measured(program, done.markers, by.kind, by.reason, seconds, tuple(replies))

    return ResultRow(name, list(await asyncio.gather(*map(place, programs))))


def read_programs(options: argparse.Namespace) -> list[Any]:
    """Read the part of the corpus that was asked for."""
    splits = labelled.SPLITS if options.split == "all" else (options.split,)
    programs = [program for split in splits for program in labelled.read_corpus(split)]
    return programs[: options.programs]


async def measure(options: argparse.Namespace) -> list[ResultRow]:
    """Measure the static analyzer, and the model in each requested mode."""
    programs = read_programs(options)
    static = StaticInstrumenter()
    await static.instrument(Program("pass"))
    rows = [await place_all("static", static, programs, 1)]
    await static.aclose()
    for mode in Mode if options.mode == "both" else [Mode(options.mode)]:
        if options.url:
            rows += await ask_model(options, mode, programs)
    return rows


async def ask_model(
    options: argparse.Namespace, mode: Mode, programs: list[Any]
) -> list[ResultRow]:
    """Measure the model in one mode, with its stand-in and without."""
    endpoint = CountingEndpoint(
        options.url,
        options.model,
        deadline_seconds=options.deadline_seconds,
        context_tokens=options.context_tokens,
    )
    await endpoint.start()
    instrumenter = LmInstrumenter(StaticInstrumenter(), endpoint, mode=mode, merge=options.merge)
    name = f"{mode.value}{'+static' if options.merge else ''}"
    row = await place_all(f"{name} served", instrumenter, programs, options.concurrency)
    await instrumenter.aclose()
    return [row, ResultRow(f"{name} alone", row.measured, alone=True)]


def show(rows: list[ResultRow]) -> None:
    """Print one table, a column for each way."""
    numbers = [row.numbers for row in rows]
    width = max(18, *(len(row.name) + 2 for row in rows))
    print(" " * 24 + "".join(f"{row.name:>{width}}" for row in rows))
    lines = {"all": [(n["precision"], n["recall"]) for n in numbers]}
    for milestone in Milestone:
        parts = [n["milestones"][milestone.label] for n in numbers]
        lines[milestone.label] = [(part["precision"], part["recall"]) for part in parts]
    for label, cells in lines.items():
        shown = (f"{precision:.3f} / {recall:.3f}" for precision, recall in cells)
        print(f"{label:24}" + "".join(f"{cell:>{width}}" for cell in shown))
    for key in ("prompt_tokens", "completion_tokens", "seconds_median", "seconds_p95", "refused"):
        print(f"{key:24}" + "".join(f"{n[key]:>{width}.3f}" for n in numbers))
    for row in rows:
        for reason, count in () if row.alone else row.refusals.most_common():
            print(f"{row.name} refused {count} times: {reason}")


def show_ratio(rows: list[ResultRow]) -> float | None:
    """Print what `insert` costs beside `rewrite`, over the programs both were answered for."""
    asked = [row.tokens() for row in rows if row.name.endswith(" served")]
    if len(asked) != len(Mode):
        return None
    both = [pair for pair in zip(*asked, strict=True) if all(pair)]
    if not both:
        return None
    insert, rewrite = map(sum, zip(*both, strict=True))
    print(f"completion tokens of {len(both)} programs, insert / rewrite: {insert / rewrite:.3f}")
    return insert / rewrite


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="an OpenAI-compatible endpoint")
    parser.add_argument("--model", default="Qwen/Qwen2.5-3B-Instruct")
    parser.add_argument("--mode", choices=["insert", "rewrite", "both"], default="both")
    parser.add_argument("--merge", action="store_true", help="add the static analyzer's markers")
    parser.add_argument("--programs", type=int, metavar="N", help="only the first N")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--split", choices=["heldout", "dev", "all"], default="heldout")
    parser.add_argument("--deadline-seconds", type=float, default=120.0)
    parser.add_argument("--context-tokens", type=int, default=16384)
    parser.add_argument("--throughput", action="store_true")
    parser.add_argument("--posted", type=int, default=128, help="programs posted at once")
    parser.add_argument("--latency-seconds", type=float, default=2.0, help="of the scripted model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here as well")
    return parser.parse_args()


def main() -> None:
    """Measure what was asked for and print one table."""
    options = read_options()
    if options.throughput:
        numbers: dict[str, Any] = measure_waiting(options.posted, options.latency_seconds)
    else:
        rows = asyncio.run(measure(options))
        show(rows)
        numbers = {row.name: row.numbers for row in rows}
        numbers["insert_to_rewrite"] = show_ratio(rows)
        if options.url:
            numbers["insert_to_rewrite_right"] = right_ratio(
                options.url, options.model, read_programs(options)
            )
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=2) + "\n")


if __name__ == "__main__":
    main()
