"""Durable jobs under faults: every accepted job ends once, with the right reward."""

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
    lose_a_cache_lookup,
    lose_a_sandbox_and_its_report,
    lose_a_status_lookup,
    send_one_key_twice,
)
from tests.support.job_client import own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.chaos.world.cluster import World

SECONDS = 25.0


@pytest.fixture(scope="module")
def world(data_dir: Path) -> Iterator[World]:
    with own_folder(data_dir) as own, open_folder() as folder, running_world(folder, own) as made:
        yield made


def test_a_late_result_is_fenced_off(world: World) -> None:
    with Scene(world) as scene:
        let_a_result_come_late(scene)
        assert scene.check() == []


def test_one_key_sent_twice_at_once_is_one_job(world: World) -> None:
    with Scene(world) as scene:
        send_one_key_twice(scene)
        assert scene.check() == []


def test_a_lost_sandbox_is_retried_though_the_report_was_lost(world: World) -> None:
    with Scene(world) as scene:
        assert lose_a_sandbox_and_its_report(scene).attempt == 2
        assert scene.check() == []


def test_a_worker_without_the_database_leaves_the_job_to_a_retry(
    world: World,
) -> None:
    with Scene(world) as scene:
        assert lose_a_cache_lookup(scene).attempt >= 2
        assert scene.check() == []


def test_a_silent_database_does_not_end_a_job(world: World) -> None:
    with Scene(world) as scene:
        lose_a_status_lookup(scene)
        assert scene.check() == []


def test_a_batch_is_correct_after_a_server_and_a_worker_die(world: World) -> None:
    with Scene(world) as scene:
        views = kill_one_of_each(scene)
        assert sorted(views) == list(range(12))
        assert all(isinstance(view, Answered) for _, view in views.values())
        assert scene.check() == []


def test_no_fault_loses_doubles_or_mixes_up_jobs(world: World) -> None:
    """This stops the world at its end to check for leftovers, so it must come last."""
    with Scene(world):
        pass  # the table is clean
    report = unleash(world, ChaosPlan(SECONDS, secrets.randbelow(1 << 31), pause_seconds=0.5))
    assert report.violations == [], "\n".join(report.lines())
    assert report.endings["scored"] > 0
    assert report.endings["failed"] > 0
