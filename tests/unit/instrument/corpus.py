"""The hand-labelled programs: `#> 3 5` ends each line whose statement completes a step."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from reward_server.instrument.static.analyzer import find_markers
from reward_server.instrument.verification import verify

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


def expected(code: str) -> set[tuple[int, int]]:
    found = set()
    for number, line in enumerate(code.split("\n"), 1):
        _, sign, milestones = line.partition("#>")
        if sign:
            found |= {(number, int(milestone)) for milestone in milestones.split()}
    return found


def markers_verify(code: str) -> bool:
    """Assert that the markers of a program verify; return whether it compiles at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(code)
            compile(tree, "<program>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
        assert verify(code, find_markers(tree))
    return True
