"""Finding task folders and reading their cards.

A task folder may be anywhere; what makes it one is its `task.toml`. Other installed packages
offer task folders by an entry point, whose value names a package: its folder is a task folder
or holds task folders. It is found on disk; the server imports nothing of the package.
"""

from __future__ import annotations

import importlib.util
import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from reward_server.errors import SetupError
from reward_server.tasks.base import Card

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

BUILT_IN = Path(__file__).parent / "catalog"
ENTRY_POINTS = "reward_server.tasks"
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CARDS = TypeAdapter(Card)


def read_card(folder: Path) -> Card:
    """Read the card of a task folder.

    Raises:
        SetupError: when it is missing, is not TOML, or has missing, unknown or wrong fields.
    """
    path = folder / "task.toml"
    try:
        card = _CARDS.validate_python(read_toml(path), extra="forbid")
    except ValidationError as error:
        message = f"{path}: {_describe(error)}"
        raise SetupError(message) from error
    if not is_task_id(card.id):
        message = f"{path}: id must be lower-case words joined by hyphens"
        raise SetupError(message)
    return card


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        SetupError: when it cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{path} cannot be read: {error}"
        raise SetupError(message) from error


def is_task_id(text: str) -> bool:
    """Tell whether a text may be the id of a task."""
    return _ID.fullmatch(text) is not None


def find_folders(directories: Iterable[Path] = ()) -> dict[str, Path]:
    """Return the task folders by id: built-in ones, installed ones and those of the directories.

    A directory is a task folder itself, or has task folders directly below it.

    Raises:
        SetupError: when a card is wrong, an id occurs twice or a package offers no task.
    """
    found: dict[str, Path] = {}
    for directory in (BUILT_IN, *installed_folders(), *directories):
        for path in (*directory.glob("task.toml"), *sorted(directory.glob("*/task.toml"))):
            task_id = read_card(path.parent).id
            if task_id in found:
                message = f"the task {task_id} is both in {found[task_id]} and in {path.parent}"
                raise SetupError(message)
            found[task_id] = path.parent
    return found


def _describe(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}" for problem in problems
    )


def installed_folders() -> tuple[Path, ...]:
    """Return the folder behind every entry point, each once.

    Raises:
        SetupError: when an entry point has no task folder; the text names the package.
    """
    return tuple(dict.fromkeys(_locate(point) for point in entry_points(group=ENTRY_POINTS)))


def _locate(point: EntryPoint) -> Path:
    top, *rest = point.value.split(".")
    spec = importlib.util.find_spec(top) if top.isidentifier() else None
    locations = [] if spec is None else spec.submodule_search_locations or []
    for location in locations:
        folder = Path(location, *rest)
        if (folder / "task.toml").is_file() or any(folder.glob("*/task.toml")):
            return folder
    package = "a package" if point.dist is None else point.dist.name
    message = f"{package} offers tasks in {point.value}, where there is no task folder"
    raise SetupError(message)
