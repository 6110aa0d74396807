"""What the lab leaves behind: one JSON file that grows run by run, and can be gone on with."""

from __future__ import annotations

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

_PACKAGES = ("reward-server", "torch", "numpy", "matplotlib")


@dataclass(frozen=True, slots=True)
class Record:
    """One run: its arm and seed, its steps, and what the policy writes in the end."""

    arm: str
    seed: int
    steps: tuple[dict[str, Any], ...]
    final: dict[str, Any]

    @property
    def key(self) -> tuple[str, int]:
        """What tells runs apart."""
        return self.arm, self.seed

    def series(self, name: str) -> list[float]:
        """Return a number of every step, NaN where there is none.

        `slow` is the share of slow families among all that were sampled, `best_so_far` the best
        score up to a step.
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
        """Return the mean of the last steps' numbers."""
        found = [value for value in self.series(name)[-count:] if not math.isnan(value)]
        return sum(found) / len(found) if found else math.nan

    def steps_until(self, name: str, level: float) -> float:
        """Return the first step with at least so much, one more than there are if there is none."""
        reached = [i for i, value in enumerate(self.series(name), 1) if value >= level]
        return float(reached[0] if reached else len(self.steps) + 1)

    @property
    def best(self) -> float:
        """Return the best score of all programs that the policy writes in the end."""
        return math.nan if self.final["best"] is None else float(self.final["best"])

    def written(self, name: str) -> float:
        """Return a number of the programs that the policy writes from scratch in the end."""
        value = self.final["scratch"][name]
        return math.nan if value is None else float(value)


def record(arm: str, seed: int, steps: Sequence[LabStep], final: Sequence[LabSample]) -> Record:
    """Return what is kept of a run."""
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
    """All runs made with the same budget and config, in a file."""

    def __init__(self, file: Path, budget: dict[str, int], arms: dict[str, Any]) -> None:
        self._file = file
        self.budget = budget
        self.head = {"space": fingerprint(), "budget": budget, "arms": arms}
        self.records: list[Record] = []
        self.about: dict[str, Any] = {}
        if file.exists():
            self._read()

    def add(self, one: Record, command: str) -> None:
        """Keep a run, at once and whole."""
        self.records.append(one)
        self.about = {
            "commands": list(dict.fromkeys([*self.about.get("commands", ()), command])),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "python": platform.python_version(),
            "versions": {name: version(name) for name in _PACKAGES},
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        content = {**self.head, **self.about, "runs": [asdict(record) for record in self.records]}
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(content, indent=1))
        beside.replace(self._file)

    def has(self, arm: str, seed: int) -> bool:
        """Tell whether this run has been made."""
        return any(one.key == (arm, seed) for one in self.records)

    def _read(self) -> None:
        content = json.loads(self._file.read_text())
        if any(content.get(name) != value for name, value in self.head.items()):
            message = f"{self._file} has runs with another budget or other config; move it away"
            raise ValueError(message)
        self.about = {
            name: value for name, value in content.items() if name not in {"runs", *self.head}
        }
        self.records = [
            Record(one["arm"], one["seed"], tuple(one["steps"]), one["final"])
            for one in content["runs"]
        ]
