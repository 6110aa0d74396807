"""Finding task folders and reading their cards.

A task folder may lie anywhere; what makes it one is its `task.toml`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from reward_server.errors import SetupError
from reward_server.tasks.base import Card
from reward_server.tasks.installed import installed_folders

if TYPE_CHECKING:
    from collections.abc import Iterable

BUILT_IN = Path(__file__).parent / "catalog"
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CARDS = TypeAdapter(Card)


def read_card(folder: Path) -> Card:
    """Read the card of a task folder.

    Raises:
        SetupError: when it is missing, is not TOML, or has missing, unknown or wrong fields.
    """
    path = folder / "task.toml"
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        card = _CARDS.validate_python(fields, extra="forbid")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{path} cannot be read: {error}"
        raise SetupError(message) from error
    except ValidationError as error:
        message = f"{path}: {_describe(error)}"
        raise SetupError(message) from error
    if not is_task_id(card.id):
        message = f"{path}: id must be lower-case words joined by hyphens"
        raise SetupError(message)
    return card


def is_task_id(text: str) -> bool:
    """Tell whether a text may be the id of a task."""
    return _ID.fullmatch(text) is not None


def find_folders(directories: Iterable[Path] = ()) -> dict[str, Path]:
    """Return the task folders by id: built-in ones, installed ones and those of the directories.

    A directory is a task folder itself, or task folders lie directly below it.

    Raises:
        SetupError: when a card is wrong, an id stands twice or a package offers no task.
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
