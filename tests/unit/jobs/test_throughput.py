"""How fast a queue moves, by what has ended while jobs waited."""

from __future__ import annotations

import pytest

from reward_server.jobs.throughput import Throughput


def measured(*noted: tuple[float, int, bool]) -> Throughput:
    throughput = Throughput()
    for now, ends, is_waited_for in noted:
        throughput.note(ends, is_waited_for=is_waited_for, now=now)
    return throughput


def test_ends_over_the_time_in_which_others_waited() -> None:
    assert measured((0, 0, True), (10, 40, True), (20, 100, True)).rate == pytest.approx(5)


def test_an_idle_hour_says_nothing() -> None:
    noted = ((0, 0, True), (10, 100, True), (11, 110, False), (3600, 110, False))
    assert measured(*noted, (3601, 110, True), (3611, 210, True)).rate == pytest.approx(10)


def test_where_nothing_has_ended_the_first_end_is_still_to_come() -> None:
    rates = [measured((0, 0, True), (t, 0, True)).rate for t in (1, 60, 600)]
    assert rates == [pytest.approx(1 / 5), pytest.approx(1 / 60), pytest.approx(1 / 600)]


def test_what_was_long_ago_is_forgotten_once_there_is_enough_that_is_newer() -> None:
    slow = [(60 * minute, minute, True) for minute in range(30)]
    fast = [(1740 + t, 29 + 10 * t, True) for t in range(1, 122)]
    assert measured(*slow).rate == pytest.approx(1 / 60, rel=0.01)
    assert measured(*slow, *fast).rate == pytest.approx(10, rel=0.05)
