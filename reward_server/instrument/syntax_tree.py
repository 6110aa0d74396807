"""What the static analyzer, the reply parser and verification all ask of a syntax tree."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reward_server.model import Marker

Position = tuple[int, int]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


def position_of(node: ast.stmt) -> Position:
    """Return the line and the column, in bytes, where a statement begins."""
    return node.lineno, node.col_offset


def marker_order(marker: Marker) -> tuple[int, int, int]:
    """Return the sort key that puts markers in the order of the source text."""
    return marker.line, marker.column, marker.milestone


def blocks_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements directly inside a module or a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for name in ("handlers", "cases"):
        for part in getattr(node, name, []):
            yield part.body


def names_in(*nodes: ast.AST) -> set[str]:
    """Return every name that is mentioned."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def parameters_of(function: ast.AST) -> set[str]:
    """Return the names of all parameters inside a node."""
    return {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def same_tree(first: object, second: object, *, with_positions: bool) -> bool:
    """Compare two trees, or parts of trees, at any depth without recursion."""
    stack = [(first, second)]
    while stack:
        left, right = stack.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST) and isinstance(right, ast.AST):
            names = vars(left).keys() if with_positions else left._fields
            if with_positions and names != vars(right).keys():
                return False
            stack.extend((getattr(left, n, None), getattr(right, n, None)) for n in names)
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif repr(left) != repr(right):
            return False
    return True
