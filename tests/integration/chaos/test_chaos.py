"""Durable jobs under faults: what was accepted ends once, with the reward it has earned."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from tests.integration.chaos.history import Answered
from tests.integration.chaos.running import ChaosPlan, open_folder, running_world, unleash
from tests.integration.chaos.scenes import (
    Scene,
    kill_one_of_each,
    let_a_result_come_late,
    lose_a_box_and_the_word_of_it,
    lose_a_question,
    lose_an_ending,
    send_one_key_twice,
)
from tests.support.job_client import own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.chaos.cluster import World

SECONDS = 25.0


@pytest.fixture(scope="module")
def world(data_dir: Path) -> Iterator[World]:
    with own_folder(data_dir) as own, open_folder() as folder, running_world(folder, own) as made:
        yield made


def test_a_result_that_comes_late_is_fenced_off(world: World) -> None:
    with Scene(world) as scene:
        let_a_result_come_late(scene)
        assert scene.check() == []


def test_one_key_sent_twice_at_once_is_one_job(world: World) -> None:
    with Scene(world) as scene:
        send_one_key_twice(scene)
        assert scene.check() == []


def test_a_job_whose_box_was_lost_runs_again_though_nobody_could_be_told(world: World) -> None:
    with Scene(world) as scene:
        assert lose_a_box_and_the_word_of_it(scene).attempt == 2
        assert scene.check() == []


def test_a_worker_that_cannot_ask_the_database_leaves_the_job_to_another_attempt(
    world: World,
) -> None:
    with Scene(world) as scene:
        assert lose_a_question(scene).attempt >= 2
        assert scene.check() == []


def test_a_database_that_does_not_answer_is_not_told_as_the_end_of_a_job(world: World) -> None:
    with Scene(world) as scene:
        lose_an_ending(scene)
        assert scene.check() == []


def test_a_batch_is_complete_and_correct_though_one_of_each_was_killed(world: World) -> None:
    with Scene(world) as scene:
        views = kill_one_of_each(scene)
        assert sorted(views) == list(range(12))
        assert all(isinstance(view, Answered) for _, view in views.values())
        assert scene.check() == []


def test_nothing_is_lost_doubled_or_mixed_up_whatever_fails(world: World) -> None:
    """Stop the world at the end, to see what is left of it: nothing can come after this."""
    with Scene(world):
        pass  # the table is clean
    report = unleash(world, ChaosPlan(SECONDS, secrets.randbelow(1 << 31), pause_seconds=0.5))
    assert report.violations == [], "\n".join(report.lines())
    assert report.endings["scored"] > 0
    assert report.endings["failed"] > 0
