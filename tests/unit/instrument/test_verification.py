from __future__ import annotations

import ast

import pytest

from reward_server.instrument.verification import (
    find_objection,
    insert_markers,
    strip_markers,
    verify,
)
from reward_server.model import Marker, Milestone

CODE = '''"""Docstring."""
from __future__ import annotations
import os

class A:
    x = 1
    if x:
        y = 2
    def f(self):
        z = 3
        return z

def g():
    raise ValueError
for i in range(3):
    if i:
        continue
    else:
        break
try:
    a = 1; b = 2
except ValueError:
    pass
match a:
    case 1:
        c = 3
'''


def at(line: int, column: int, milestone: int = 2) -> Marker:
    return Marker(line, column, Milestone(milestone))


@pytest.mark.parametrize(
    "place",
    [(2, 0), (3, 0), (5, 0), (10, 8), (13, 0), (15, 0), (16, 4), (20, 0), (21, 4), (21, 11),
     (23, 4), (24, 0), (26, 8)],
)  # fmt: skip
def test_markers_may_follow_a_complete_statement(place: tuple[int, int]) -> None:
    assert find_objection(CODE, [at(*place)]) is None


@pytest.mark.parametrize(
    "place",
    [
        (1, 0),
        (6, 4),
        (7, 4),
        (8, 8),
        (9, 4),
        (11, 8),
        (14, 4),
        (17, 8),
        (19, 8),
        (3, 1),
        (4, 0),
        (99, 0),
    ],
)
def test_markers_may_not_stand_elsewhere(place: tuple[int, int]) -> None:
    assert find_objection(CODE, [at(*place)]) is not None


def test_several_milestones_may_follow_one_statement_but_none_twice() -> None:
    assert verify(CODE, [at(3, 0, 1), at(3, 0, 2)])
    assert not verify(CODE, [at(3, 0, 1), at(3, 0, 1)])


def test_markers_run_after_their_statement_and_can_be_removed_again() -> None:
    code = "a = 1\nif a:\n    b = 2\n"
    tree = insert_markers(ast.parse(code), [at(1, 0, 5), at(1, 0, 3), at(3, 4, 7)], "mark")
    seen: list[int] = []
    exec(compile(tree, "<program>", "exec"), {"mark": seen.append})  # noqa: S102
    assert seen == [3, 5, 7]
    stripped = ast.dump(strip_markers(tree, "mark"), include_attributes=True)
    assert stripped == ast.dump(ast.parse(code), include_attributes=True)


def test_a_program_that_uses_the_name_of_the_marker_is_not_harmed() -> None:
    assert verify("marker_ = print\nmarker_(3)\nmarker__(4)\n", [at(1, 0)])


def test_a_program_that_does_not_compile_is_refused() -> None:
    assert find_objection("return 1", []) is not None
    assert find_objection("x = (", []) is not None
