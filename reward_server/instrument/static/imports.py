"""What a program imports, what it forgot to import, and which names stem from either.

A statement that uses a name without its import fails, so a marker after it is never reached.
The analyzer still places the marker, because a person would. This holds only while nothing in
the program can create the name: if the program binds it anywhere, or can bind names by text,
the name means nothing.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from reward_server.instrument.static.library_names import BIND_BY_TEXT, READERS, USUAL_MEANINGS
from reward_server.instrument.syntax_tree import (
    DEFINITIONS,
    blocks_of,
    names_in,
    parameters_of,
    position_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reward_server.instrument.syntax_tree import Position

_MOST_PASSES = 12


def is_package(path: str) -> bool:
    """Tell whether a qualified name belongs to something other than the standard library."""
    return bool(path) and path.partition(".")[0] not in sys.stdlib_module_names


def imported_names(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that an import statement binds, with the qualified name it stands for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(node, ast.ImportFrom):
        prefix = f"{node.module}." if node.module else ""
        for alias in node.names:
            yield alias.asname or alias.name, prefix + alias.name


def imported_paths(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for; the first import of a name counts."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if not getattr(node, "level", 0):
            for name, path in imported_names(node):
                found.setdefault(name, path)
    return found


def imports_package(node: ast.AST) -> bool:
    """Tell whether a node imports anything outside the program and the standard library."""
    relative = getattr(node, "level", 0)
    return not relative and any(is_package(path) for _, path in imported_names(node))


def last_package_import(body: list[ast.stmt], events: set[Position]) -> Position | None:
    """Return the last import before the first event, if a package is imported up to there."""
    last = _last_import(body, events)
    names_package = last is not None and any(
        imports_package(node)
        for statement in body
        if position_of(statement) <= last and not isinstance(statement, DEFINITIONS)
        for node in ast.walk(statement)
    )
    return last if names_package else None


def _last_import(body: list[ast.stmt], events: set[Position]) -> Position | None:
    limit = min(events, default=None)
    found: Position | None = None
    for statement in body:
        if limit is not None and position_of(statement) > limit:
            break
        nested = [node for node in ast.walk(statement) if isinstance(node, ast.stmt)]
        if not any(map(_is_import, nested)) or isinstance(statement, DEFINITIONS):
            continue
        if any(position_of(node) in events for node in nested):
            inner = [part for block in blocks_of(statement) for part in block]
            found = _last_import(inner, events) or found
        else:
            found = position_of(statement)
    return found


def _is_import(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module != "__future__"
    return isinstance(node, ast.Import)


def touched_names(tree: ast.Module, paths: dict[str, str]) -> set[str]:
    """Return the names that stem from a package, a file or a parameter.

    Order and scopes do not count: a name that is ever bound to an expression with such a name
    is one as well, so the answer errs towards "may be".
    """
    touched = {"open"} | parameters_of(tree)
    touched |= {n for n, p in paths.items() if is_package(p) or p.partition(".")[0] in READERS}
    bindings = [(bound, names_in(source)) for bound, source in _bindings(tree)]
    for _ in range(_MOST_PASSES):
        new = {name for bound, used in bindings if used & touched for name in bound} - touched
        if not new:
            break
        touched |= new
    return touched


def _bindings(tree: ast.Module) -> Iterator[tuple[set[str], ast.AST]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield names_in(*node.targets), node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
            if node.value is not None:
                yield names_in(node.target), node.value
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield names_in(node.target), node.iter
        elif isinstance(node, ast.withitem):
            if node.optional_vars is not None:
                yield names_in(node.optional_vars), node.context_expr
        elif isinstance(node, DEFINITIONS):
            yield {node.name}, node


def missing_imports(tree: ast.Module) -> dict[str, str]:
    """Return the usual meaning of the names that a program uses but never binds."""
    used: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.Attribute):
            if node.attr in BIND_BY_TEXT:
                return {}
            if isinstance(node.ctx, ast.Store):
                bound.add(node.attr)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return {}
            bound |= {(node.asname or node.name).partition(".")[0], node.name}
        else:
            bound |= _names_bound_by(node)
    if (used | bound) & (BIND_BY_TEXT | {"eval", "getattr"}):
        return {}
    return {name: USUAL_MEANINGS[name] for name in used - bound if name in USUAL_MEANINGS}


def _names_bound_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Global | ast.Nonlocal):
        return set(node.names)
    names = (getattr(node, field, None) for field in ("name", "arg", "rest"))
    return {name for name in names if isinstance(name, str)}
