"""Which names of a program have to do with a package or with a file that was read.

It is told without order or scopes: a name that is ever bound to something that mentions such a
name is one as well, so that the answer errs towards "may be".
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

READERS = frozenset(
    {"bz2", "csv", "glob", "gzip", "io", "json", "lzma", "pathlib", "pickle", "sqlite3"}
    | {"tarfile", "zipfile"}
)
_ROUNDS = 12
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def is_package(path: str) -> bool:
    """Tell whether a qualified name belongs to something other than the standard library."""
    return bool(path) and path.partition(".")[0] not in sys.stdlib_module_names


def imported_paths(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for; the first import of a name counts."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        for name, path in _imports(node):
            found.setdefault(name, path)
    return found


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def touched_names(tree: ast.Module, paths: dict[str, str]) -> set[str]:
    """Return the names that stem from a package, a file or a parameter."""
    touched = {"open"}
    touched |= {n for n, p in paths.items() if is_package(p) or p.partition(".")[0] in READERS}
    touched |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bindings = [(bound, names_in(source)) for bound, source in _bindings(tree)]
    for _ in range(_ROUNDS):
        new = {name for bound, used in bindings if used & touched for name in bound} - touched
        if not new:
            break
        touched |= new
    return touched


def names_in(*nodes: ast.AST) -> set[str]:
    """Return every name that is mentioned."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


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
        elif isinstance(node, _SCOPES):
            yield {node.name}, node
