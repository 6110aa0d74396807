"""What trainers keep of an answer: numbers for their logs, and the id of the solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_client.client.answers import Answer

DURATIONS = {"wall": "duration_seconds", "cpu": "cpu_seconds"}


def measure(answer: Answer, *, is_improvement: bool) -> dict[str, float | str]:
    """Return what a trainer keeps of an answer. Every sample has the same keys.

    The task's own score is not included: a program without a valid submission has none.
    """
    return {
        "score": answer.reward,
        "valid": float(answer.valid),
        "medal": float(answer.medal is not None),
        "milestones": float(len(answer.milestones)),
        "timed_out": float(answer.error is not None and answer.error.kind == "timeout"),
        "improvement": float(is_improvement),
        "duration_seconds": answer.duration_seconds,
        "cpu_seconds": answer.cpu_seconds,
        "contended": float(answer.sandbox.contended),
        "queue_seconds": answer.timings.queue,
        "solution_id": answer.solution_id,
    }


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """An answer, and whether its prompt asked to improve on an earlier solution."""

    answer: Answer
    is_improvement: bool

    def measures(self) -> dict[str, float | str]:
        """Return what a trainer keeps beside the reward."""
        return measure(self.answer, is_improvement=self.is_improvement)

    def numbers(self) -> dict[str, float]:
        """Return the measures that are numbers."""
        return {name: one for name, one in self.measures().items() if isinstance(one, float)}
