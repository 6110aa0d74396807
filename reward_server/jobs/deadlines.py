"""How long a job may take, computed from the settings: every accepted job ends within that."""

from __future__ import annotations

from dataclasses import dataclass

_BOOT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DeadlineConfig:
    """What decides how long a job can take."""

    max_attempts: int
    instrument_seconds: float
    wall_seconds: float
    grade_seconds: float
    lease_seconds: float
    queue_seconds: float
    round_seconds: float
    programs_before: int = 1


def budget_seconds(bounds: DeadlineConfig, wall_seconds: float) -> float:
    """Return the time a job has over all its attempts, once the first has begun.

    A job that was borrowed ahead of time may have to wait for the longest programs there are.
    """
    wall = min(wall_seconds, bounds.wall_seconds) + bounds.programs_before * bounds.wall_seconds
    attempt = bounds.instrument_seconds + _BOOT_SECONDS + wall + bounds.grade_seconds
    return bounds.max_attempts * (attempt + bounds.lease_seconds)


def bound_seconds(bounds: DeadlineConfig, wall_seconds: float) -> float:
    """Return the time within which a job ends, counted from its acceptance.

    It waits for its first worker, and after an interruption for the next, no longer than
    `queue_seconds` since it was accepted; the last worker has the budget that is left.
    """
    late = bounds.lease_seconds + 2 * bounds.round_seconds
    return bounds.queue_seconds + budget_seconds(bounds, wall_seconds) + late
