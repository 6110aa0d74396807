"""How long a job may take, by the settings: every accepted job ends within that."""

from __future__ import annotations

from dataclasses import dataclass

_BOOT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DeadlineConfig:
    """What decides how long a job can take; `reaper_seconds` is the period of the reaper."""

    max_attempts: int
    instrument_seconds: float
    wall_seconds: float
    grade_seconds: float
    lease_seconds: float
    queue_seconds: float
    reaper_seconds: float
    programs_before: int = 1


def budget_seconds(deadlines: DeadlineConfig, wall_seconds: float) -> float:
    """Return the time a job has over all its attempts, once the first has begun.

    A job that was leased ahead of time may have to wait for the longest programs there are.
    """
    wall = (
        min(wall_seconds, deadlines.wall_seconds)
        + deadlines.programs_before * deadlines.wall_seconds
    )
    attempt = deadlines.instrument_seconds + _BOOT_SECONDS + wall + deadlines.grade_seconds
    return deadlines.max_attempts * (attempt + deadlines.lease_seconds)


def bound_seconds(deadlines: DeadlineConfig, wall_seconds: float) -> float:
    """Return the time within which a job ends, counted from its acceptance.

    It waits for its first worker, and after an interruption for the next, no longer than
    `queue_seconds` since it was accepted; the last worker has the budget that is left.
    """
    late = deadlines.lease_seconds + 2 * deadlines.reaper_seconds
    return deadlines.queue_seconds + budget_seconds(deadlines, wall_seconds) + late
