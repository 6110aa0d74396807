"""What trainers keep of an answer: numbers to take means of, and the name of the solution."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_client.client.answers import Answer

DURATIONS = {"wall": "duration_seconds", "cpu": "cpu_seconds"}


def measure(answer: Answer, *, is_improvement: bool) -> dict[str, float | str]:
    """Return what a trainer keeps of an answer beside the reward: the same keys for every sample.

    The score of the task is not among it: a program without a valid submission has none, and a
    number would be made up.
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


def numbers(answer: Answer, *, is_improvement: bool) -> dict[str, float]:
    """Return what of it is a number."""
    measured = measure(answer, is_improvement=is_improvement)
    return {name: one for name, one in measured.items() if isinstance(one, float)}


def parent_of(extra_info: Mapping[str, object]) -> str | None:
    """Return the solution that a prompt asked to improve on."""
    parent_id = extra_info.get("parent_id")
    return str(parent_id) if parent_id else None
