"""Installed packages add tasks by an entry point, without being imported."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from reward_server.errors import SetupError
from reward_server.tasks.catalog.template import write_task
from reward_server.tasks.folders import find_folders

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def install(site: Path, value: str) -> None:
    about = site / "more_tasks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: more-tasks\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[reward_server.tasks]\nmine = {value}\n")
    importlib.invalidate_caches()


@pytest.mark.parametrize(
    "value", ["more_tasks", "more_tasks.inner", "more_tasks.inner.my_own_task"]
)
def test_a_package_is_a_task_folder_or_holds_some(site: Path, value: str) -> None:
    folder = write_task("my-own-task", site.joinpath("more_tasks", *value.split(".")[1:2]))
    (site / "more_tasks" / "__init__.py").write_text("raise RuntimeError('imported')")
    install(site, value)
    assert find_folders()["my-own-task"] == folder


@pytest.mark.parametrize("value", ["more_tasks", "no_such_package", "more_tasks.nothing", "a b:c"])
def test_an_entry_point_without_tasks_names_its_package(site: Path, value: str) -> None:
    (site / "more_tasks").mkdir()
    (site / "more_tasks" / "__init__.py").touch()
    install(site, value)
    with pytest.raises(SetupError, match="more-tasks offers tasks"):
        find_folders()


def test_a_given_folder_may_be_a_task_folder_itself(tmp_path: Path) -> None:
    folder = write_task("my-own-task", tmp_path)
    assert find_folders([folder])["my-own-task"] == folder
    assert find_folders([tmp_path])["my-own-task"] == folder
