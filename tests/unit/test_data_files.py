"""Data files beside modules belong to the packages that the wheel ships."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

from reward_server.instrument.lm import plausibility, prompts
from reward_server.instrument.static import library_names
from reward_server.sandbox import seccomp

ROOT = Path(__file__).parents[2]
MODULES = (library_names, plausibility, prompts, seccomp)


def test_the_wheel_ships_the_data_files() -> None:
    """The build takes every file of its packages that git does not ignore."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert set(wheel) == {"targets"}
    assert set(wheel["targets"]["wheel"]) == {"packages"}, "nothing is excluded"
    files = [Path(str(module.__file__)).with_suffix(".toml") for module in MODULES]
    names = [path.relative_to(ROOT) for path in files]
    assert {name.parts[0] for name in names} <= set(wheel["targets"]["wheel"]["packages"])
    line = ["git", "check-ignore", "--no-index", *map(str, names)]
    assert subprocess.run(line, cwd=ROOT, check=False, capture_output=True).stdout == b""
