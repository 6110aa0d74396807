"""Whether a statement can be the step that a marker claims, judged by its structure alone.

The program can talk the language model into anything, so the model's word is not enough. A step
counts only if a statement that can be that step runs at the marker or before it.
"Imported packages" needs an import of a package. The others need a call, or the later ones
arithmetic, on something that stems from a package or a file, and that is not known to do
something else. A loop or a `with` does what its body does; an `if` only what both branches do; a
`try` only what is also done when it fails; a function of the program what its body does.

The check does not follow data: a real prediction for the wrong rows, a loop that runs zero times,
or a hollow class with its own `fit` pass. The order in which milestones count, and their number,
bound what such a marker is worth.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_server.instrument.static.imports import (
    imported_paths,
    imports_package,
    is_package,
    touched_names,
)
from reward_server.instrument.static.library_names import READERS, Role, role_of
from reward_server.instrument.syntax_tree import DEFINITIONS, FUNCTIONS, blocks_of, position_of
from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.model import Marker

Steps = frozenset[Milestone]
_NONE: Steps = frozenset()
_IMPORT: Steps = frozenset({Milestone.IMPORTED_PACKAGES})
_LOAD: Steps = frozenset({Milestone.LOADED_DATA})
_DEFINE: Steps = frozenset({Milestone.DEFINED_MODEL})
_TRAIN: Steps = frozenset({Milestone.TRAINED_MODEL})
_LOSSES: Steps = frozenset({Milestone.TRAINING_LOSS, Milestone.TESTING_LOSS})
_PREDICT: Steps = frozenset({Milestone.PREDICTED_TEST_LABELS})
_ANY: Steps = _LOAD | _DEFINE | _TRAIN | _LOSSES | _PREDICT
_ARITHMETIC: Steps = _LOSSES | _PREDICT

_STEPS = {
    "load": _LOAD,
    "define": _DEFINE,
    "train": _TRAIN,
    "losses": _LOSSES,
    "predict": _PREDICT,
}
_TABLE: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def _steps_named(words: str) -> Steps:
    return _NONE.union(*(_STEPS[word] for word in words.split()))


_ROLES = {
    Role[name]: _steps_named(steps)
    for steps, names in _TABLE["roles"].items()
    for name in names.split()
}
_METHODS = [
    (tuple(entry["beginnings"].split()), _steps_named(entry["steps"]))
    for entry in _TABLE["methods"]
]
_BYSTANDERS = frozenset(_TABLE["bystanders"].split())
_KEPT_LOSSES = frozenset(_TABLE["kept_losses"].split())
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_DEEPEST_CALL = 8


class Plausibility:
    """The steps that each statement of one program can be."""

    def __init__(self, tree: ast.Module) -> None:
        self._paths = imported_paths(tree)
        self._touched = touched_names(tree, self._paths)
        self._functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self._classes: dict[str, ast.ClassDef] = {}
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                self._functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                self._classes[node.name] = node
        self._depth = 0
        self._known: dict[ast.AST, Steps] = {}
        self._touching: dict[ast.AST, bool] = {}
        self._steps_before: dict[tuple[int, int], Steps] = {}
        self._visit(tree.body, _NONE)

    def allows(self, marker: Marker) -> bool:
        """Tell whether the step a marker names can have been taken at its position."""
        return marker.milestone in self._steps_before.get((marker.line, marker.column), _NONE)

    def _visit(self, body: Sequence[ast.stmt], so_far: Steps) -> None:
        for statement in body:
            for block in blocks_of(statement):
                self._visit(block, so_far)
            so_far |= self._steps(statement)
            so_far |= _IMPORT if _passes_package_import(statement) else _NONE
            self._steps_before[position_of(statement)] = so_far

    def _block(self, body: Sequence[ast.stmt]) -> Steps:
        found = _NONE
        for statement in body:
            found |= self._steps(statement)
            if isinstance(statement, _ENDS):
                break
        return found

    def _steps(self, node: ast.AST) -> Steps:
        if node not in self._known:
            self._known[node] = self._compute_steps(node)
        return self._known[node]

    def _compute_steps(self, node: ast.AST) -> Steps:  # noqa: PLR0911 - one line a kind of node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return _NONE
            case ast.ClassDef():
                return self._class(node)
            case ast.If() | ast.IfExp():
                return self._steps(node.test) | self._both(node)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.Match():
                return self._steps(node.subject)
            case ast.BoolOp():
                return self._steps(node.values[0])
        if _never_runs(node):
            return _NONE
        return self._own(node) | self._children(node)

    def _own(self, node: ast.AST) -> Steps:
        """Return the steps of a node itself, without those of its parts."""
        match node:
            case ast.Call():
                return self._call(node)
            case ast.For(iter=ast.Name(id=name)) if name in self._touched:
                return _LOAD  # the lines of an open file
            case ast.Attribute(attr=name) if name in _KEPT_LOSSES:
                return _LOSSES if self._uses_touched_name(node) else _NONE
            case ast.BinOp() | ast.AugAssign() if self._uses_touched_name(node):
                return _ARITHMETIC if isinstance(node, ast.BinOp) else _ARITHMETIC | _TRAIN
        return _NONE

    def _children(self, node: ast.AST) -> Steps:
        found = _NONE
        for _, part in ast.iter_fields(node):
            if isinstance(part, ast.AST):
                found |= self._steps(part)
            elif isinstance(part, list) and part and isinstance(part[0], ast.stmt):
                found |= self._block(part)
            elif isinstance(part, list):
                for child in part:
                    found |= self._steps(child) if isinstance(child, ast.AST) else _NONE
        return found

    def _uses_touched_name(self, node: ast.AST) -> bool:
        """Tell whether a name that stems from a package or a file is mentioned."""
        if node not in self._touching:
            if isinstance(node, ast.Name):
                found = node.id in self._touched
            else:
                found = any(map(self._uses_touched_name, ast.iter_child_nodes(node)))
            self._touching[node] = found
        return self._touching[node]

    def _both(self, node: ast.If | ast.IfExp) -> Steps:
        if isinstance(node, ast.IfExp):
            return self._steps(node.body) & self._steps(node.orelse)
        return self._block(node.body) & self._block(node.orelse)

    def _try(self, node: ast.Try | ast.TryStar) -> Steps:
        done = self._block(node.body) | self._block(node.orelse)
        # A handler that raises or returns never reaches the statement after the `try`.
        for handler in node.handlers:
            if not isinstance(handler.body[-1], ast.Raise | ast.Return):
                done &= self._block(handler.body)
        return done | self._block(node.finalbody)

    def _class(self, node: ast.ClassDef) -> Steps:
        has_methods = any(isinstance(part, FUNCTIONS) for part in node.body)
        return _DEFINE if has_methods and self._uses_touched_name(node) else _NONE

    def _call(self, node: ast.Call) -> Steps:
        path = self._path(node.func)
        if path:
            return _steps_of_path(path)
        match node.func:
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(attr=name):
                if not self._uses_touched_name(node.func):
                    return _NONE
                own = self._function(name) if name in self._functions else _NONE
                return own | _steps_of_method(name)
        return _ANY if self._uses_touched_name(node.func) else _NONE

    def _named(self, name: str) -> Steps:
        if name in self._functions:
            return self._function(name)
        if name in self._classes:
            return self._steps(self._classes[name])
        if name == "open":
            return _LOAD
        return _ANY if name in self._touched else _NONE

    def _function(self, name: str) -> Steps:
        """Return the steps of all functions with this name; a recursive call adds none."""
        found = _NONE
        if self._depth >= _DEEPEST_CALL:
            return found
        self._depth += 1
        for function in self._functions[name]:
            key = function.args  # the definition itself does nothing, its body does
            if key not in self._known:
                self._known[key] = _NONE  # a recursive call ends here
                self._known[key] = self._block(function.body)
            found |= self._known[key]
        self._depth -= 1
        return found

    def _path(self, node: ast.expr) -> str:
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._paths:
            return ""
        return ".".join([self._paths[node.id], *reversed(names)])


def _steps_of_path(path: str) -> Steps:
    role = role_of(path)
    if role is not None:
        return _ROLES.get(role, _NONE)
    top, _, name = path.partition(".")
    if not is_package(path):
        return _LOAD if top in READERS else _NONE
    if top in _BYSTANDERS:
        return _NONE
    is_class = name.rpartition(".")[2][:1].isupper()
    return _LOAD | _DEFINE if is_class else _ANY


def _steps_of_method(name: str) -> Steps:
    for beginnings, steps in _METHODS:
        if name.startswith(beginnings):
            return steps
    return _ANY


def _never_runs(node: ast.AST) -> bool:
    match node:
        case ast.While(test=ast.Constant(value=value)):
            return not value
        case ast.For(iter=ast.List(elts=[]) | ast.Tuple(elts=[])):
            return True
    return False


def _passes_package_import(statement: ast.stmt) -> bool:
    if isinstance(statement, DEFINITIONS):
        return False
    inner = (part for block in blocks_of(statement) for part in block)
    return imports_package(statement) or any(map(_passes_package_import, inner))
