"""A new task works before anything in it is changed, and never takes another's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reward_server.errors import SetupError
from reward_server.grade.process import grade_all
from reward_server.tasks.catalog.template import SKELETON, write_task
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.preparation.inspection import inspect_task
from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_task_can_be_prepared_and_has_no_problem(tmp_path: Path) -> None:
    folder = write_task("my-own-task", tmp_path / "tasks")
    assert folder == tmp_path / "tasks" / "my_own_task"
    registry = Registry(tmp_path / "data", [tmp_path / "tasks"])
    for _ in range(3):
        prepare_task(registry.folder("my-own-task"), tmp_path / "data")
        assert inspect_task(folder, tmp_path / "data", grade_all).failures == ()
    description = registry.get("my-own-task").description
    assert "/workdir/my-own-task/prepared/public" in description
    assert ",".join(read_card(folder).columns) in description


def test_no_file_of_a_new_task_has_the_skeletons_name(tmp_path: Path) -> None:
    folder = write_task("my-own-task", tmp_path)
    names = {path.name for path in folder.iterdir()}
    assert names == {path.name for path in SKELETON.iterdir() if path.name != "__pycache__"}
    assert all("new-task" not in path.read_text() for path in folder.iterdir())


def test_the_skeleton_itself_is_not_a_task() -> None:
    assert "new-task" not in find_folders()


@pytest.mark.parametrize(
    "task_id", ["", "Upper", "two words", "../up", "under_score", "-a", "a--b"]
)
def test_an_invalid_id_is_refused(tmp_path: Path, task_id: str) -> None:
    with pytest.raises(SetupError, match="no id of a task"):
        write_task(task_id, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_or_id_is_refused(tmp_path: Path) -> None:
    write_task("my-own-task", tmp_path)
    (tmp_path / "other_task").mkdir()
    for task_id in ("my-own-task", "other-task", "random-acts-of-pizza"):
        with pytest.raises(SetupError, match="already"):
            write_task(task_id, tmp_path)
