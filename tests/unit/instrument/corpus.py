"""The hand-labelled programs: `#> 3 5` ends each line whose statement completes a step."""

from __future__ import annotations

from pathlib import Path

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


def expected(code: str) -> set[tuple[int, int]]:
    found = set()
    for number, line in enumerate(code.split("\n"), 1):
        _, sign, milestones = line.partition("#>")
        if sign:
            found |= {(number, int(milestone)) for milestone in milestones.split()}
    return found
