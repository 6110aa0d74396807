"""Loading a task's own files as Python modules, by path, wherever the folder is."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from typing import TYPE_CHECKING

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

# Where tasks of users may still import from, and where it is now.
_MOVED = {
    "reward_server.grade.checks": "reward_server.tasks.sdk.checks",
    "reward_server.grade.metrics": "reward_server.tasks.sdk.metrics",
    "reward_server.tasks.large": "reward_server.tasks.sdk.raw",
    "reward_server.tasks.pictures": "reward_server.tasks.sdk.raw",
    "reward_server.tasks.raw": "reward_server.tasks.sdk.raw",
    "reward_server.tasks.tables": "reward_server.tasks.sdk.tables",
}


def load_module(path: Path, *functions: str) -> ModuleType:
    """Execute a file and return it as a module that has the functions.

    Raises:
        SetupError: when the file is missing, lacks one of them or imports a module that has moved.
    """
    digest = hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:16]
    name = f"_task_{digest}_{path.stem}"
    module = load_file(name, path)
    for function in functions:
        if not callable(getattr(module, function, None)):
            message = f"{path.parent.name}: {path.name} has no function {function}"
            raise SetupError(message)
    return module


def load_file(name: str, path: Path, folders: list[str] | None = None) -> ModuleType:
    """Execute a file as the module of that name, or as a package of modules in the folders.

    Raises:
        SetupError: when the file is missing.
    """
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    if spec is None or spec.loader is None or not path.is_file():
        message = f"{path.parent.name}: {path.name} is missing"
        raise SetupError(message)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses need their module here while it is executed
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if error.name not in _MOVED:
            raise
        message = f"{path.parent.name}/{path.name}: {error.name} has moved to {_MOVED[error.name]}"
        raise SetupError(message) from error
    return module
