"""How well a batch of programs of very different length fills the slots.

The programs sleep, so that a busy machine does not matter, for times with a long tail (lognormal,
with a fixed seed). Two batches run, one after the other:

- a whole batch: its time against the lower bound of any order, which is the longest program or the
  sum over the slots, by the durations the server measured;
- half a batch (`min_complete`): when the call returned, against when the last needed job ended.

    .venv/bin/python benchmarks/packing.py [--programs 128] [--slots 2] [--seconds 75]
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import sys
import time
from dataclasses import dataclass
from typing import Any

import httpx
from pipeline import TASK, warm_up
from server import serving, temporary_folder

_SEED = 7
_SIGMA = 1.0
_MOST_SPAN = 1.05
_MOST_LATE = 1.02
_CLIENT_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Packing:
    """A batch from its acceptance to its last line."""

    durations: list[float]
    boots: list[float]
    returned: float

    def least(self, slots: int) -> float:
        """Return the lower bound of any order."""
        return max(*self.durations, sum(self.durations) / slots)

    def in_order(self, slots: int) -> float:
        """Return the time of this order if no slot ever idles between programs."""
        free = [0.0] * slots
        for duration in self.durations:
            heapq.heapreplace(free, free[0] + duration)
        return max(free)


def draw_naps(count: int, slots: int, seconds: float) -> list[float]:
    """Draw durations with a long tail that together fill every slot for so long."""
    chance = random.Random(_SEED)  # noqa: S311 - the same programs every time
    drawn = [chance.lognormvariate(0, _SIGMA) for _ in range(count)]
    scale = slots * seconds / sum(drawn)
    return [scale * one for one in drawn]


def items(naps: list[float]) -> list[dict[str, object]]:
    """Return one item per nap."""
    return [
        {"task_id": TASK, "code": f"import time\ntime.sleep({nap:.4f})\nprint({number})\n"}
        for number, nap in enumerate(naps)
    ]


def stream(url: str, naps: list[float]) -> Packing:
    """Score a batch over one connection and measure it."""
    durations: dict[int, float] = {}
    boots: list[float] = []
    body = {"items": items(naps)}
    begun = time.monotonic()
    with httpx.stream("POST", f"{url}/score/batch", json=body, timeout=_CLIENT_SECONDS) as lines:
        if lines.status_code != 200:
            sys.exit(f"the server said {lines.status_code}: {lines.read().decode()}")
        for line in filter(str.strip, lines.iter_lines()):
            answer = json.loads(line)
            durations[answer["index"]] = answer["duration_seconds"]
            boots.append(answer["timings"]["boot"])
    in_turn = [durations[n] for n in range(len(naps))]
    return Packing(in_turn, boots, time.monotonic() - begun)


def wait_for_some(url: str, naps: list[float], enough: int) -> float:
    """Return the call's time for a part of a batch, relative to the end of that part."""
    body = {"items": items(naps), "min_complete": enough}
    begun = time.monotonic()
    sent = httpx.post(f"{url}/v1/batches", json=body, timeout=60).raise_for_status().json()
    path = f"{url}/v1/batches/{sent['batch_id']}"
    waited = httpx.get(path, params={"wait_seconds": 3600}, timeout=_CLIENT_SECONDS)
    returned = time.monotonic() - begun
    batch: dict[str, Any] = waited.raise_for_status().json()
    if not batch["complete"] or len(batch["results"]) < enough:
        sys.exit(f"{len(batch['results'])} of {enough} when the call came back")
    ends = sorted(one["timings"]["total"] for one in batch["results"])
    return returned / ends[enough - 1]


def main() -> None:
    """Measure both and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=128)
    parser.add_argument("--slots", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=75, help="of sleep for every slot")
    options = parser.parse_args()
    naps = draw_naps(options.programs, options.slots, options.seconds)
    extra = {"REWARD_SERVER_SANDBOX__SLOTS": str(options.slots)}
    with temporary_folder() as parent, serving(parent / "data", extra=extra) as server:
        warm_up(server.port)
        url = f"http://127.0.0.1:{server.port}"
        packing = stream(url, naps)
        late = wait_for_some(url, naps, options.programs // 2)
    least, in_order = packing.least(options.slots), packing.in_order(options.slots)
    span = packing.returned / least
    longest, total = max(packing.durations), sum(packing.durations)
    print(
        f"{options.programs} programs on {options.slots} slots: {packing.returned:.2f} s, "
        f"longest {longest:.2f} s, in all {total:.2f} s"
    )
    print(f"span over the least possible      {span:.4f}   {_verdict(span, _MOST_SPAN)}")
    boot = sum(packing.boots) / options.slots / least
    print(f"  of which due to this order       {in_order / least:.4f}")
    print(f"  of which sandbox start-up      +{boot:.4f}")
    print(f"call for half over its last end   {late:.4f}   {_verdict(late, _MOST_LATE)}")
    sys.exit(0 if span <= _MOST_SPAN and late <= _MOST_LATE else 1)


def _verdict(value: float, most: float) -> str:
    return f"{'ok' if value <= most else 'OUT OF BOUNDS'} (at most {most:g})"


if __name__ == "__main__":
    main()
