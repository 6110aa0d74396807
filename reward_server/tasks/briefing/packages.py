"""The packages that a program can import, with their versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_TOOLS = frozenset({"pip", "setuptools", "wheel"})
_FIRST = (
    *("numpy", "pandas", "scikit-learn", "scipy", "lightgbm", "xgboost", "xgboost-cpu"),
    *("torch", "statsmodels", "pillow"),
)
_PIN = re.compile(r"\s*([A-Za-z0-9._-]+)\s*==\s*([^\s;#]+)")


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution and its version."""

    name: str
    version: str


def installed_packages(environment: Path) -> tuple[Package, ...]:
    """Return what is installed in a virtual environment."""
    found = environment.glob("lib/python3*/site-packages/*.dist-info")
    parts = (path.name.removesuffix(".dist-info").rpartition("-") for path in found)
    return _sort(Package(name, version) for name, _, version in parts)


def pinned_packages(requirements: Path) -> tuple[Package, ...]:
    """Return what a file of pinned requirements installs; nothing if there is no such file."""
    if not requirements.is_file():
        return ()
    lines = requirements.read_text(encoding="utf-8").splitlines()
    pins = (match for line in lines if (match := _PIN.match(line)))
    return _sort(Package(match[1], match[2]) for match in pins)


def _sort(packages: Iterable[Package]) -> tuple[Package, ...]:
    """Put those first that most programs want."""
    named = (Package(_normalise(package.name), package.version) for package in packages)
    kept = (package for package in named if package.name not in _TOOLS)
    return tuple(sorted(kept, key=lambda package: (_rank(package.name), package.name)))


def _rank(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
