"""The files of a task are loaded as modules by their path."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from reward_server.errors import SetupError
from reward_server.tasks.sdk import modules

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("old", modules._MOVED)
def test_an_import_that_has_moved_names_the_new_path(old: str, tmp_path: Path) -> None:
    new = modules._MOVED[old]
    importlib.import_module(new)
    (tmp_path / "grade.py").write_text(f"from {old} import anything\n")
    with pytest.raises(SetupError, match=f"grade.py: {old} has moved to {new}"):
        modules.load_module(tmp_path / "grade.py")


def test_another_missing_import_is_raised_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "grade.py").write_text("import no_such_package\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        modules.load_module(tmp_path / "grade.py")
