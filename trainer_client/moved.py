"""Old import paths keep working: each is an alias of the module or class that took its place.

    trainer_client.verl.manager  ->  trainer_client.integrations.verl.manager

Configurations of veRL, AReaL, SkyRL and slime name modules by their path, so a path that was once
documented cannot just disappear. An old path warns with a DeprecationWarning that names the new
one. It is the same module object: code that registers something on import runs once, whichever of
its two names comes first.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.util import find_spec, spec_from_loader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

_PACKAGE = "trainer_client"
_INTEGRATIONS = ("areal", "areal_durations", "skyrl", "slime", "trl", "verifiers", "verl")
# A path that is listed covers everything below it; the longest match wins.
_MOVED = {
    **{name: f"integrations.{name}" for name in _INTEGRATIONS},
    "answers": "client.answers",
    "async_client": "client.asynchronous",
    "errors": "client.errors",
    "options": "client.options",
    "outage": "client.outages",
    "patience": "client.outages",
    "race": "client.asynchronous",
    "replies": "client.replies",
    "session": "client.session",
    "submissions": "client.submissions",
    "watch": "client.job_poller",
    "wire": "client.transport",
    "evaluate.drawing": "evaluate.endpoint",
    "lab.serving": "lab.server",
    "lab.space": "lab.program_space",
    "launch.lengths": "launch.prompt_lengths",
    "launch.running": "launch.command",
    "verl.dead_keys": "integrations.verl.config_keys",
    "verl.known_keys": "integrations.verl.config_keys",
    "verl.scoring": "integrations.verl.manager",
}


def current_path(name: str) -> str:
    """Return where a module of this package is now; any other name is returned as it is."""
    package, _, rest = name.partition(".")
    parts = rest.split(".")
    if package != _PACKAGE or not rest:
        return name
    for length in range(len(parts), 0, -1):
        if new := _MOVED.get(".".join(parts[:length])):
            return ".".join((_PACKAGE, new, *parts[length:]))
    return name


def renamed(module: str, names: Mapping[str, str], name: str) -> Any:  # noqa: ANN401 - any class
    """Return what a module now has under another name, for the module's `__getattr__`.

    Raises:
        AttributeError: the module never had this name.
    """
    if name not in names:
        message = f"module {module!r} has no attribute {name!r}"
        raise AttributeError(message)
    _warn(f"{module}.{name}", f"{module}.{names[name]}", stacklevel=4)
    return getattr(sys.modules[module], names[name])


class _MovedModules(MetaPathFinder, InspectLoader):
    """Finds modules by their old paths."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return an alias, or None for every module that has not moved."""
        del path, target
        new = current_path(fullname)
        if new == fullname:
            return None
        spec = find_spec(new)
        if spec is None:
            message = f"{fullname} has moved, but there is no {new}"
            raise ModuleNotFoundError(message, name=fullname)
        _warn(fullname, new, stacklevel=3)
        is_package = spec.submodule_search_locations is not None
        return spec_from_loader(fullname, self, origin=spec.origin, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself. Importlib then puts the alias's spec on it."""
        module = importlib.import_module(current_path(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the module's own spec back; it has already run under its new name."""
        alias = module.__spec__
        if alias is not None:
            module.__spec__ = alias.loader_state

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code that `python -m` runs."""
        spec = find_spec(current_path(fullname))
        loader = None if spec is None else spec.loader
        return loader.get_code(spec.name) if spec and isinstance(loader, InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:
        """Return no source: tracebacks read it from the file."""
        del fullname
        return None


def install() -> None:
    """Make old paths importable, once in a process.

    First in the list: an aliased package has the search path of the new one, where Python's own
    finder would load its submodules a second time under their old names.
    """
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedModules())


def _warn(old: str, new: str, stacklevel: int) -> None:
    message = f"{old} has moved to {new}: the old name will be removed"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)
