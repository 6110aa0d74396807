"""What the lab leaves behind: one JSON file that grows run by run, and can be gone on with."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from trainer_client.lab.space import FAMILIES, FAMILY, fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trainer_client.lab.training import Sample, Step

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
        """Return a number of every step; `best_so_far` is the best score up to it."""
        if name != "best_so_far":
            return [float(step[name]) for step in self.steps]
        best, found = float("nan"), []
        for step in self.steps:
            if step["best_score"] is not None and not best >= step["best_score"]:
                best = step["best_score"]
            found.append(best)
        return found


def record(arm: str, seed: int, steps: Sequence[Step], final: Sequence[Sample]) -> Record:
    """Return what is kept of a run."""
    valid = [sample for sample in final if sample.answer.valid]
    chosen = [FAMILIES[sample.actions[FAMILY]] for sample in final]
    return Record(
        arm,
        seed,
        tuple(asdict(step) for step in steps),
        {
            "samples": len(final),
            "valid": len(valid) / len(final),
            "mean_score": _mean([sample.score for sample in valid]),
            "mean_duration": _mean([sample.answer.duration_seconds for sample in final]),
            "cpu_seconds": _mean([sample.answer.cpu_seconds for sample in final]),
            "families": {name: chosen.count(name) / len(chosen) for name in FAMILIES},
        },
    )


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


class Book:
    """All runs made with the same budget, in a file."""

    def __init__(self, file: Path, budget: dict[str, int]) -> None:
        self._file = file
        self.budget = budget
        self._head = {"space": fingerprint(), "budget": budget}
        self.records: list[Record] = []
        self.about: dict[str, Any] = {}
        if file.exists():
            self._read()

    def add(self, one: Record, command: str) -> None:
        """Keep a run, at once and whole."""
        self.records.append(one)
        self.about = {
            "command": command,
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
            "python": platform.python_version(),
            "versions": {name: version(name) for name in _PACKAGES},
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        content = {**self._head, **self.about, "runs": [asdict(record) for record in self.records]}
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(content, indent=1))
        beside.replace(self._file)

    def has(self, arm: str, seed: int) -> bool:
        """Tell whether this run has been made."""
        return any(one.key == (arm, seed) for one in self.records)

    def _read(self) -> None:
        content = json.loads(self._file.read_text())
        if any(content[name] != value for name, value in self._head.items()):
            message = f"{self._file} has runs with another budget or other choices; move it away"
            raise ValueError(message)
        self.about = {
            name: value for name, value in content.items() if name not in {"runs", *self._head}
        }
        self.records = [
            Record(one["arm"], one["seed"], tuple(one["steps"]), one["final"])
            for one in content["runs"]
        ]
