"""The training command and its environment."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from trainer_client.integrations.verl.findings import at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_client.integrations.verl.findings import Tree

_ENV = "ray_kwargs.ray_init.runtime_env.env_vars"
_MODULES = "VERL_USE_EXTERNAL_MODULES"


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """A command and the environment variables that it adds."""

    words: tuple[str, ...]
    additions: Mapping[str, str]

    def show(self) -> list[str]:
        """Return the command in shell syntax, a line for each override."""
        head = [f"{name}={shlex.quote(value)} \\" for name, value in self.additions.items()]
        start = f"{shlex.join(self.words[:3])} \\"
        rest = [f"  {shlex.quote(word)} \\" for word in self.words[3:]]
        return [*head, start, *rest[:-1], rest[-1].removesuffix(" \\")]

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the command."""
        return {**os.environ, **self.additions}


def make_command(tree: Tree, overrides: tuple[str, ...]) -> LaunchCommand:
    """Return what starts veRL with this configuration.

    Ray's processes on this machine inherit the environment, including the API key. What processes
    on other machines need is part of the configuration, too.
    """
    additions = {name: str(value) for name, value in (at(tree, _ENV) or {}).items()}
    others = [name for name in os.environ.get(_MODULES, "").split(",") if name]
    ours = [name for name in additions.get(_MODULES, "").split(",") if name]
    additions[_MODULES] = ",".join(dict.fromkeys([*others, *ours]))
    additions["PYTHONPATH"] = _with_package(os.environ.get("PYTHONPATH", ""))
    return LaunchCommand((sys.executable, "-m", "verl.trainer.main_ppo", *overrides), additions)


def exec_command(command: LaunchCommand) -> NoReturn:
    """Replace this process by the command, which then gets its signals and sets its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command.words[0], command.words, command.environment())  # noqa: S606 - no shell


def _with_package(path: str) -> str:
    """Return a search path with this package, for Ray's processes."""
    here = str(Path(__file__).resolve().parents[2])
    parts = [part for part in path.split(os.pathsep) if part]
    return os.pathsep.join(dict.fromkeys([here, *parts]))
