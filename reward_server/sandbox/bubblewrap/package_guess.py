"""Which programs need packages: a guess from the text, because a wrong guess costs only time.

A program that names none is forked from a bare interpreter, all others from the zygote, whose
fork costs ten times as much and saves seconds of importing.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+([^\n#;]+)", re.MULTILINE)


class PackageGuess:
    """Tells programs that may need a package from those that cannot."""

    def __init__(self, preload: Iterable[str]) -> None:
        names = sorted({name.partition(".")[0] for name in preload})
        self._named = re.compile(rf"\b(?:{'|'.join(names) or '(?!)'})\b")

    def needs_packages(self, code: str) -> bool:
        """Tell whether a program names a preloaded package or imports one that is not built in."""
        return self._named.search(code) is not None or not _imported(code) <= _BUILT_IN


_BUILT_IN = sys.stdlib_module_names


def _imported(code: str) -> set[str]:
    found = set()
    for line in _IMPORT.findall(code):
        for name in line.partition(" import ")[0].split(","):
            words = name.split()
            if words:
                found.add(words[0].partition(".")[0])
    return found
