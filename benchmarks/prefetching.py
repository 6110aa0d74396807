"""How long slots are idle while programs wait for the language model to place markers."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeline import post_score, warm_up
from server import ROOT, serving, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

sys.path.append(str(ROOT))
endpoints = importlib.import_module("tests.support.lm_endpoints")
_SLOTS = len(os.sched_getaffinity(0))
_PROGRAM = """\
import json
import time
time.sleep(0.2)
print({number})
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The use of the slots between the first start and the last end of a program."""

    span_seconds: float
    busy_seconds: float
    idle_seconds: float
    idle_share: float
    instrument_seconds: float


def measure_waiting(count: int, latency_seconds: float) -> dict[str, Any]:
    """Send all programs at once to a server with `static`, and to one with a slow model."""
    with endpoints.ScriptedEndpoint() as scripted, temporary_folder() as parent:
        scripted.behave = _slowly(latency_seconds)
        lm = {
            "REWARD_SERVER_INSTRUMENT__KIND": "lm",
            "REWARD_SERVER_INSTRUMENT__URL": scripted.url,
            "REWARD_SERVER_INSTRUMENT__MODEL": endpoints.MODEL,
        }
        found = {
            "static": _measure(parent / "static", {}, count),
            "lm": _measure(parent / "lm", lm, count),
        }
    for name, waiting in found.items():
        print(
            f"{name:8} span {waiting.span_seconds:7.2f} s, busy {waiting.busy_seconds:7.2f} s, "
            f"idle {waiting.idle_seconds:7.2f} s of slots ({waiting.idle_share:.1%}), "
            f"{waiting.instrument_seconds:.2f} s to instrument a program"
        )
    ratios = {
        "span_ratio": found["lm"].span_seconds / found["static"].span_seconds,
        "idle_share_difference": found["lm"].idle_share - found["static"].idle_share,
    }
    print(f"lm / static: span {ratios['span_ratio']:.2f}")
    return {name: asdict(waiting) for name, waiting in found.items()} | ratios


def _slowly(latency_seconds: float) -> Any:  # noqa: ANN401 - a behaviour of the scripted endpoint
    answer = endpoints.places((1, "imported packages"))

    async def behave(body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(latency_seconds)
        await answer(body, writer)

    return behave


def _measure(folder: Path, extra: Mapping[str, str], count: int) -> Waiting:
    with serving(folder, extra=extra) as server:
        warm_up(server.port)
        runs = [post_score(server.port, _PROGRAM.format(number=n)) for n in range(count)]
        start = threading.Barrier(count)

        def run(one: Callable[[], dict[str, Any]]) -> tuple[float, dict[str, Any]]:
            start.wait()
            answer = one()
            return time.monotonic(), answer

        with ThreadPoolExecutor(count) as pool:
            answers = list(pool.map(run, runs))
    return _sum_up(answers)


def _sum_up(answers: list[tuple[float, dict[str, Any]]]) -> Waiting:
    """Compute when each program ran from when its answer came and from its timings."""
    spans = []
    for came_at, answer in answers:
        timings = answer["timings"]
        end = came_at - timings["grade"]
        spans.append((end - timings["execute"] - timings["boot"], end))
    span = max(end for _, end in spans) - min(begin for begin, _ in spans)
    busy = sum(end - begin for begin, end in spans)
    idle = max(0.0, _SLOTS * span - busy)
    instrument = sum(answer["timings"]["instrument"] for _, answer in answers) / len(answers)
    return Waiting(span, busy, idle, idle / (_SLOTS * span), instrument)
