"""How fast a queue moves, by the jobs that ended while others waited."""

from __future__ import annotations

import pytest

from reward_server.jobs.throughput import Throughput


def measured(*recorded: tuple[float, int, bool]) -> Throughput:
    throughput = Throughput()
    for now, ends, has_waiting in recorded:
        throughput.record(ends, has_waiting=has_waiting, now=now)
    return throughput


def test_the_rate_is_ends_over_the_time_in_which_others_waited() -> None:
    assert measured((0, 0, True), (10, 40, True), (20, 100, True)).rate == pytest.approx(5)


def test_an_idle_hour_does_not_change_the_rate() -> None:
    recorded = ((0, 0, True), (10, 100, True), (11, 110, False), (3600, 110, False))
    assert measured(*recorded, (3601, 110, True), (3611, 210, True)).rate == pytest.approx(10)


def test_before_the_first_end_the_rate_assumes_one() -> None:
    rates = [measured((0, 0, True), (t, 0, True)).rate for t in (1, 60, 600)]
    assert rates == [pytest.approx(1 / 5), pytest.approx(1 / 60), pytest.approx(1 / 600)]


def test_old_ends_are_forgotten_once_there_are_enough_newer_ones() -> None:
    slow = [(60 * minute, minute, True) for minute in range(30)]
    fast = [(1740 + t, 29 + 10 * t, True) for t in range(1, 122)]
    assert measured(*slow).rate == pytest.approx(1 / 60, rel=0.01)
    assert measured(*slow, *fast).rate == pytest.approx(10, rel=0.05)
