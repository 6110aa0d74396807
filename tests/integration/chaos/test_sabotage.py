"""The checker must detect a server without its safeguards."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.chaos.running import open_folder, running_world
from tests.integration.chaos.sabotaged import CONSTRAINTS
from tests.integration.chaos.scenes import Scene, let_a_result_come_late, send_one_key_twice
from tests.integration.chaos.world.postgres import ask
from tests.support.job_client import own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.chaos.world.cluster import World

SABOTAGED = (sys.executable, "-m", "tests.integration.chaos.sabotaged")


@pytest.fixture(scope="module")
def world(data_dir: Path) -> Iterator[World]:
    with (
        own_folder(data_dir) as own,
        open_folder() as folder,
        running_world(folder, own, 1, SABOTAGED) as made,
    ):
        for statement in CONSTRAINTS:
            asyncio.run(ask(made.url, statement))
        yield made


def test_the_checker_detects_missing_fencing(world: World) -> None:
    with Scene(world) as scene:
        let_a_result_come_late(scene)
        assert any("has 2 results" in line for line in scene.check())


def test_the_checker_detects_duplicate_keys(world: World) -> None:
    with Scene(world) as scene:
        send_one_key_twice(scene)
        assert "key twice has 2 jobs" in scene.check()
