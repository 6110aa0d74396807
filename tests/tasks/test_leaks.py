"""The leak lint finds what gives a label away, and only that."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from leak_plants import SUITE
from leak_tasks import FOLDERS, MADE_UP, Prepared, make

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from leak_plants import Plant

SEEDS = (11, 12, 13)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Prepared]:
    made: dict[tuple[str, int], Prepared] = {}

    def get(task_id: str, seed: int) -> Prepared:
        if (task_id, seed) not in made:
            made[task_id, seed] = make(task_id, tmp_path_factory.mktemp("clean") / "data", seed)
        return made[task_id, seed]

    return get


@pytest.mark.parametrize("task_id", [*FOLDERS, *MADE_UP])
@pytest.mark.parametrize("seed", SEEDS)
def test_clean_data_has_no_leak(
    clean: Callable[[str, int], Prepared], task_id: str, seed: int
) -> None:
    assert clean(task_id, seed).leaks() == {}


@pytest.mark.parametrize("plant", SUITE.values(), ids=SUITE.keys())
def test_a_planted_leak_is_found(
    clean: Callable[[str, int], Prepared], tmp_path: Path, plant: Plant
) -> None:
    data = clean(plant.task_id, SEEDS[0])
    copy = Prepared(data.card, tmp_path / "copy")
    shutil.copytree(data.root, copy.root)
    plant.sow(copy)
    assert plant.place in copy.leaks()
