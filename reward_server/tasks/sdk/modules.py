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


def load_module(path: Path, *functions: str) -> ModuleType:
    """Execute a file and return it as a module that has the functions.

    Raises:
        SetupError: when the file is missing or lacks one of them.
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
    spec.loader.exec_module(module)
    return module
