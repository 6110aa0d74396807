"""Every job gets the time it may need, and ends within a time known in advance."""

from __future__ import annotations

import heapq

import pytest

from reward_server.bootstrap.implementations import make_deadlines
from reward_server.jobs.deadlines import DeadlineConfig, bound_seconds, budget_seconds
from reward_server.settings import JobSettings, Settings

WALL = 100.0


def deadlines(slots: int, ahead: int | None) -> DeadlineConfig:
    settings = Settings(
        max_attempts=1,
        jobs=JobSettings(ahead=ahead),
        limits={"wall_seconds": WALL},  # type: ignore[arg-type]
        sandbox={"kind": "bubblewrap", "slots": slots},  # type: ignore[arg-type]
    )
    return make_deadlines(settings)


def last_end(slots: int, ahead: int, own_wall_seconds: float) -> float:
    """Return when the last of the jobs a worker leased at once ends; all others take longest."""
    free = [0.0] * slots
    for _ in range(slots + ahead - 1):
        heapq.heapreplace(free, free[0] + WALL)
    return free[0] + own_wall_seconds


@pytest.mark.parametrize("own_wall_seconds", [1.0, WALL])
@pytest.mark.parametrize(("slots", "ahead"), [(1, 0), (1, 1), (2, 2), (4, 4), (2, 7), (1, 5)])
def test_a_job_leased_behind_the_longest_programs_has_enough_time(
    slots: int, ahead: int, own_wall_seconds: float
) -> None:
    made = deadlines(slots, ahead)
    around = made.instrument_seconds + made.grade_seconds
    needed = last_end(slots, ahead, own_wall_seconds) + around
    assert budget_seconds(made, own_wall_seconds) >= needed


def test_by_default_a_worker_leases_at_most_slots_jobs_ahead() -> None:
    assert deadlines(2, None).programs_before == 1


def test_a_job_ends_within_its_time_in_the_queue_and_its_budget() -> None:
    made = deadlines(2, 2)
    least = made.queue_seconds + budget_seconds(made, WALL)
    assert least < bound_seconds(made, WALL) < least + made.lease_seconds + 60
