"""The lab's results: one compressed JSON file that grows run by run, so that the lab can resume."""

from __future__ import annotations

import gzip
import json
import math
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from trainer_client.lab.program_space import FAMILIES, FAMILY, SLOW_FAMILIES, fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trainer_client.lab.training import LabSample, LabStep

RESULTS = "results.json.gz"
_PACKAGES = ("reward-server", "torch", "numpy", "matplotlib")


@dataclass(frozen=True, slots=True)
class Record:
    """One run: its arm and seed, its steps, and the programs that the policy writes at the end."""

    arm: str
    seed: int
    steps: tuple[dict[str, Any], ...]
    final: dict[str, Any]

    @property
    def key(self) -> tuple[str, int]:
        """The arm and seed, which identify a run."""
        return self.arm, self.seed

    def series(self, name: str) -> list[float]:
        """Return a metric of every step, NaN where there is none.

        `slow` is the share of slow families among all samples, `best_so_far` the best score up to
        a step.
        """
        if name == "slow":
            return [sum(step["families"][slow] for slow in SLOW_FAMILIES) for step in self.steps]
        if name != "best_so_far":
            return [math.nan if step[name] is None else float(step[name]) for step in self.steps]
        best, found = math.nan, []
        for score in self.series("best_score"):
            best = score if math.isnan(best) or score > best else best
            found.append(best)
        return found

    def late(self, name: str, count: int) -> float:
        """Return the mean of a metric over the last steps."""
        found = [value for value in self.series(name)[-count:] if not math.isnan(value)]
        return sum(found) / len(found) if found else math.nan

    def steps_until(self, name: str, level: float) -> float:
        """Return the first step that reaches a level, or the number of steps plus one."""
        reached = [i for i, value in enumerate(self.series(name), 1) if value >= level]
        return float(reached[0] if reached else len(self.steps) + 1)

    @property
    def best(self) -> float:
        """The best score of all programs that the policy writes at the end."""
        return math.nan if self.final["best"] is None else float(self.final["best"])

    def written(self, name: str) -> float:
        """Return a metric of the programs that the policy writes from scratch at the end."""
        value = self.final["scratch"][name]
        return math.nan if value is None else float(value)


def record(arm: str, seed: int, steps: Sequence[LabStep], final: Sequence[LabSample]) -> Record:
    """Return the record of a run."""
    scratch = [sample for sample in final if sample.prompt.parent_id is None]
    best = max((sample.score for sample in final if sample.answer.valid), default=None)
    return Record(
        arm,
        seed,
        tuple(asdict(step) for step in steps),
        {"samples": len(final), "best": best, "scratch": _summary(scratch)},
    )


def _summary(samples: Sequence[LabSample]) -> dict[str, Any]:
    scores = [sample.score for sample in samples if sample.answer.valid]
    chosen = [FAMILIES[sample.actions[FAMILY]] for sample in samples]
    return {
        "samples": len(samples),
        "valid": len(scores) / len(samples),
        "best": max(scores, default=None),
        "mean_score": _mean(scores),
        "mean_duration": _mean([sample.answer.duration_seconds for sample in samples]),
        "cpu_seconds": _mean([sample.answer.cpu_seconds for sample in samples]),
        "families": {name: chosen.count(name) / len(chosen) for name in FAMILIES},
    }


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


class RunRecords:
    """All runs with the same budget and configuration, in one file."""

    def __init__(self, file: Path, budget: dict[str, int], arms: dict[str, Any]) -> None:
        self._file = file
        self.budget = budget
        self.head = {"space": fingerprint(), "budget": budget, "arms": arms}
        self.records: list[Record] = []
        self.about: dict[str, Any] = {}
        if file.exists():
            self._read()

    def add(self, one: Record, command: str) -> None:
        """Add a run and write the file atomically."""
        self.records.append(one)
        self.about = {
            "commands": list(dict.fromkeys([*self.about.get("commands", ()), command])),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "python": platform.python_version(),
            "versions": {name: version(name) for name in _PACKAGES},
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        content = {**self.head, **self.about, "runs": [asdict(record) for record in self.records]}
        draft = self._file.with_suffix(".new")
        # Without a timestamp, so that the same results are the same bytes.
        draft.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))
        draft.replace(self._file)

    def has(self, arm: str, seed: int) -> bool:
        """Tell whether a run is recorded."""
        return any(one.key == (arm, seed) for one in self.records)

    def _read(self) -> None:
        content = json.loads(gzip.decompress(self._file.read_bytes()))
        if any(content.get(name) != value for name, value in self.head.items()):
            message = f"{self._file} has runs with another budget or configuration; move it away"
            raise ValueError(message)
        self.about = {
            name: value for name, value in content.items() if name not in {"runs", *self.head}
        }
        self.records = [
            Record(one["arm"], one["seed"], tuple(one["steps"]), one["final"])
            for one in content["runs"]
        ]
