"""Task folders that other installed packages offer by an entry point.

The value of an entry point of the group names a package whose folder is a task folder or holds
task folders. It is found on disk; nothing of the package is imported by the server.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "reward_server.tasks"


def installed_folders() -> tuple[Path, ...]:
    """Return the folder behind every entry point, each once.

    Raises:
        SetupError: when there is none; the text names the package.
    """
    return tuple(dict.fromkeys(_locate(point) for point in entry_points(group=GROUP)))


def _locate(point: EntryPoint) -> Path:
    top, *rest = point.value.split(".")
    spec = importlib.util.find_spec(top) if top.isidentifier() else None
    places = [] if spec is None else spec.submodule_search_locations or []
    for place in places:
        folder = Path(place, *rest)
        if (folder / "task.toml").is_file() or any(folder.glob("*/task.toml")):
            return folder
    package = "a package" if point.dist is None else point.dist.name
    message = f"{package} offers tasks in {point.value}, where there is no task folder"
    raise SetupError(message)
