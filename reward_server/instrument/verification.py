"""Checks that markers leave a program as it is.

Whoever placed them (the static finder or a language model), markers are believed only if
each follows an existing statement where a call may stand, and if the program with the
markers put in and taken out again is the same syntax tree, positions included.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reward_server.model import Marker

_FINAL = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def insert_markers(tree: ast.Module, markers: Sequence[Marker], name: str) -> ast.Module:
    """Put a call of `name` with the milestone after each marked statement, in place."""
    wanted: dict[tuple[int, int], list[int]] = {}
    for marker in sorted(markers, key=lambda marker: marker.milestone):
        wanted.setdefault((marker.line, marker.column), []).append(int(marker.milestone))
    for body, _ in list(_bodies(tree)):
        extended: list[ast.stmt] = []
        for statement in body:
            extended.append(statement)
            milestones = wanted.get((statement.lineno, statement.col_offset), ())
            extended.extend(_call(name, milestone, statement) for milestone in milestones)
        body[:] = extended
    return tree


def strip_markers(tree: ast.Module, name: str) -> ast.Module:
    """Take every call of `name` that stands as a statement out again, in place."""
    for body, _ in list(_bodies(tree)):
        body[:] = [statement for statement in body if not _is_call(statement, name)]
    return tree


def verify(code: str, markers: Sequence[Marker]) -> bool:
    """Tell whether the markers stand where they may and leave the program unchanged."""
    return objection(code, markers) is None


def objection(code: str, markers: Sequence[Marker]) -> str | None:
    """Return why the markers cannot be used with this program, or nothing if they can."""
    try:
        original, copy = ast.parse(code), ast.parse(code)
        if len(set(markers)) != len(markers):
            return "a marker was given twice"
        if not {(marker.line, marker.column) for marker in markers} <= set(places(original)):
            return "a marker is not after a statement that can be followed by one"
        name = _unused_name(code)
        changed = insert_markers(copy, markers, name)
        compile(changed, "<program>", "exec", dont_inherit=True)
        same = _same(strip_markers(changed, name), original)
    except (SyntaxError, ValueError, OverflowError):
        return "the program with its markers does not compile"
    except (RecursionError, MemoryError):
        return "the program is nested too deeply to be checked"
    return None if same else "the program without its markers is not the original"


def _same(first: ast.AST, second: ast.AST) -> bool:
    """Compare two trees as their dumps would, positions included, at any depth."""
    stack: list[tuple[object, object]] = [(first, second)]
    while stack:
        left, right = stack.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST):
            if vars(left).keys() != vars(right).keys():
                return False
            stack.extend(zip(vars(left).values(), vars(right).values(), strict=True))
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif repr(left) != repr(right):
            return False
    return True


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


def places(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Return the places of all statements that a marker may follow."""
    for body, in_class in _bodies(tree):
        if in_class:
            continue
        futures = [index for index, statement in enumerate(body) if _is_future(statement)]
        first = max(futures, default=0)
        for statement in body[first:]:
            if not isinstance(statement, _FINAL):
                yield statement.lineno, statement.col_offset


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _bodies(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], bool]]:
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, in_class = stack.pop()
        for _, part in ast.iter_fields(node):
            if not isinstance(part, list) or not part:
                continue
            if isinstance(part[0], ast.stmt):
                yield part, in_class
            if isinstance(part[0], ast.stmt | ast.ExceptHandler | ast.match_case):
                stack.extend((child, _is_in_class(child, in_class=in_class)) for child in part)


def _is_in_class(node: ast.AST, *, in_class: bool) -> bool:
    if isinstance(node, ast.ClassDef):
        return True
    return in_class and not isinstance(node, _FUNCTIONS)
