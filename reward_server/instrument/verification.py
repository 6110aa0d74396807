"""Checks that markers leave a program unchanged.

The check is the same for the static analyzer and for a language model. Each marker must follow
an existing statement where a call may stand. Inserting the markers and removing them again must
give the same syntax tree, positions included.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from reward_server.instrument.syntax_tree import FUNCTIONS, blocks_of, position_of, same_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reward_server.instrument.syntax_tree import Position
    from reward_server.model import Marker

_FINAL = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def insert_markers(tree: ast.Module, markers: Sequence[Marker], name: str) -> ast.Module:
    """Insert a call of `name` with the milestone after each marked statement, in place."""
    wanted: dict[tuple[int, int], list[int]] = {}
    for marker in sorted(markers, key=lambda marker: marker.milestone):
        wanted.setdefault((marker.line, marker.column), []).append(int(marker.milestone))
    for body, _ in list(_bodies(tree)):
        extended: list[ast.stmt] = []
        for statement in body:
            extended.append(statement)
            milestones = wanted.get(position_of(statement), ())
            extended.extend(_call(name, milestone, statement) for milestone in milestones)
        body[:] = extended
    return tree


def strip_markers(tree: ast.Module, name: str) -> ast.Module:
    """Remove every statement that is a call of `name`, in place."""
    for body, _ in list(_bodies(tree)):
        body[:] = [statement for statement in body if not _is_call(statement, name)]
    return tree


def verify(code: str, markers: Sequence[Marker]) -> bool:
    """Tell whether the markers are allowed and leave the program unchanged."""
    return find_objection(code, markers) is None


def find_objection(code: str, markers: Sequence[Marker]) -> str | None:
    """Return why the markers cannot be used with this program, or nothing if they can."""
    try:
        original, copy = ast.parse(code), ast.parse(code)
        if len(set(markers)) != len(markers):
            return "a marker was given twice"
        if not {(marker.line, marker.column) for marker in markers} <= set(
            allowed_positions(original)
        ):
            return "a marker is not after a statement that can be followed by one"
        name = _unused_name(code)
        changed = insert_markers(copy, markers, name)
        compile(changed, "<program>", "exec", dont_inherit=True)
        same = same_tree(strip_markers(changed, name), original, with_positions=True)
    except (SyntaxError, ValueError, OverflowError):
        return "the program with its markers does not compile"
    except (RecursionError, MemoryError):
        return "the program is nested too deeply to be checked"
    return None if same else "the program without its markers is not the original"


def _unused_name(code: str) -> str:
    name = "marker_"
    while name in code:
        name += "_"
    return name


def _call(name: str, milestone: int, after: ast.stmt) -> ast.Expr:
    function = ast.Name(name, ast.Load())
    node = ast.Expr(ast.Call(function, [ast.Constant(milestone)], []))
    return ast.fix_missing_locations(ast.copy_location(node, after))


def _is_call(node: ast.stmt, name: str) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    return isinstance(node.value.func, ast.Name) and node.value.func.id == name


def allowed_positions(tree: ast.Module) -> Iterator[Position]:
    """Yield the positions of all statements that a marker may follow."""
    for body, in_class in _bodies(tree):
        if in_class:
            continue
        # Only other `__future__` imports may precede a `__future__` import.
        futures = [index for index, statement in enumerate(body) if _is_future(statement)]
        first = max(futures, default=0)
        for statement in body[first:]:
            if not isinstance(statement, _FINAL):
                yield position_of(statement)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _bodies(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], bool]]:
    """Yield every block of statements, and whether it stands directly in a class."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, in_class = stack.pop()
        for body in blocks_of(node):
            yield body, in_class
            stack.extend((child, _is_in_class(child, in_class=in_class)) for child in body)


def _is_in_class(node: ast.AST, *, in_class: bool) -> bool:
    if isinstance(node, ast.ClassDef):
        return True
    return in_class and not isinstance(node, FUNCTIONS)
