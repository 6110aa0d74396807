"""Finds the steps of a solution in its syntax tree, without running or importing anything.

The analyzer passes over the program a few times in source order. Each pass follows assignments
(which name holds training data, held-out data, test data, a model), the arguments of functions
and what they return; the last pass reports. The analyzer fails closed: only calls to known
packages count. A word in a string or a comment, a name that the program defines, or a library
function that the program has replaced never counts.

Not covered: loops and comprehensions that happen to run zero times, data flow through globals
set in functions, functions called by a package (except the objective of a study), attributes of
objects of unknown classes, code in strings (`exec`), names made by `globals()` or `setattr`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from reward_server.instrument.static import training
from reward_server.instrument.static.expressions import (
    add_to_container,
    bind,
    evaluate,
    evaluate_eagerly,
    iterate,
)
from reward_server.instrument.static.imports import last_package_import, missing_imports
from reward_server.instrument.static.library_names import Role, role_of
from reward_server.instrument.static.scopes import Class, Function, bind_import, names_a_metric
from reward_server.instrument.static.state import AnalysisState, Frame, Loop
from reward_server.instrument.static.values import (
    ESTIMATOR,
    NO_TAGS,
    NOTHING,
    PROPAGATED,
    UNKNOWN,
    Tag,
    Tags,
    Value,
    join,
)
from reward_server.instrument.syntax_tree import FUNCTIONS, blocks_of
from reward_server.model import Marker, Milestone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reward_server.instrument.syntax_tree import Position

_MOST_PASSES = 6
_STEPS = {
    "training_step": Tag.TRAIN,
    "train_step": Tag.TRAIN,
    "validation_step": Tag.HELDOUT,
    "test_step": Tag.HELDOUT,
}
_SILENT = (ast.Raise, ast.Break, ast.Continue, ast.Pass, ast.Global, ast.Nonlocal)


def find_markers(tree: ast.Module) -> tuple[Marker, ...]:
    """Return a marker after every statement that completes a step; none if nested too deeply."""
    try:
        events = _StatementAnalyzer().run(tree)
    except RecursionError:
        return ()
    imported = last_package_import(tree.body, {position for position, _ in events})
    if imported is not None:
        events.add((imported, Milestone.IMPORTED_PACKAGES))
    return tuple(Marker(*position, milestone) for position, milestone in sorted(events))


class _StatementAnalyzer:
    """Analyzes statements; `expressions` and `calls` say what expressions do."""

    def __init__(self) -> None:
        self.state = AnalysisState()

    def run(self, tree: ast.Module) -> set[tuple[Position, Milestone]]:
        state = self.state
        state.module.missing_imports = missing_imports(tree)
        for number in range(_MOST_PASSES):
            before = state.learned
            state.start_pass()
            self._body(tree.body)
            # In the first pass a function without a known call would see only unknown arguments.
            self._functions(called_only=number == 0)
            settled = number > 1 or not state.defines_functions
            if number and settled and before == state.learned:
                break
        # Predictions on data of unknown origin count only where none on test data was found.
        events = state.events
        if not any(milestone is Milestone.PREDICTED_TEST_LABELS for _, milestone in events):
            events |= {
                (position, Milestone.PREDICTED_TEST_LABELS)
                for position in state.possible_predictions
            }
        return events

    def _functions(self, *, called_only: bool) -> None:
        queue = self.state.queue
        analyzed: set[Function] = set()
        for function in queue:  # analyzing a body may append to it
            if function not in analyzed and (function.called or not called_only):
                analyzed.add(function)
                self._function(function)
        queue.clear()

    def _function(self, function: Function) -> None:
        state, node = self.state, function.node
        function.scope.names.clear()
        state.frame = Frame(function.scope, function, no_grad=_is_no_grad(state, node))
        state.statement = None
        self._parameters(function)
        function.returned = NOTHING
        function.returned_milestones.clear()
        if isinstance(node, ast.Lambda):
            function.returned = evaluate(state, node.body)
        else:
            self._body(node.body)
        state.resolve_pending(function)

    def _parameters(self, function: Function) -> None:
        arguments = function.node.args
        names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        given = UNKNOWN.tagged(_side_of_step(function))
        for index, argument in enumerate(names):
            value = function.parameters.get(argument.arg, given)
            if index == 0 and function.owner is not None and argument.arg == "self":
                value = Value(function.owner.tags, instance=function.owner)
            function.scope.bind(argument.arg, value)

    def _body(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, _SILENT):
            return
        before, self.state.statement = self.state.statement, node
        _HANDLERS.get(type(node), _StatementAnalyzer.plain)(self, node)
        self.state.statement = before

    def plain(self, node: ast.stmt) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                evaluate(self.state, child)

    def import_(self, node: ast.Import | ast.ImportFrom) -> None:
        bind_import(self.state.frame.scope, node)

    def assignment(self, node: ast.Assign) -> None:
        unpacked = isinstance(node.targets[0], ast.Tuple | ast.List)
        value = (evaluate_eagerly if unpacked else evaluate)(self.state, node.value)
        if not training.update_weights(self.state, node, value):
            self._assign(node.targets, node.value, value)

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign([node.target], node.value, evaluate(self.state, node.value))

    def augmented(self, node: ast.AugAssign) -> None:
        value = evaluate(self.state, node.value)
        if training.update_weights(self.state, node, value):
            return
        if isinstance(node.target, ast.Name):
            value = join(evaluate(self.state, node.target), value)
            self._assign([node.target], node.target, value)
        else:
            add_to_container(self.state, node.target, value)

    def _assign(self, targets: list[ast.expr], node: ast.expr, value: Value) -> None:
        for target in targets:
            value = training.initial_weights(self.state, target, node, value)
            metric = isinstance(target, ast.Name) and names_a_metric(target.id)
            bind(self.state, target, self._as_metric(value) if metric else value)

    def _as_metric(self, value: Value) -> Value:
        if not value.has(Tag.REDUCED):
            return value
        self.state.record_result(Tag.METRIC, value.tags & PROPAGATED)
        return Value(value.tags & ~(Tag.LINEAR | Tag.REDUCED | Tag.PREDICTION) | Tag.METRIC)

    def return_(self, node: ast.Return) -> None:
        function = self.state.frame.function
        if node.value is None or function is None:
            return
        value = evaluate(self.state, node.value)
        if isinstance(function.node, FUNCTIONS) and names_a_metric(function.node.name):
            value = self._as_metric(value)
        function.returned = join(function.returned, value)

    def for_(self, node: ast.For | ast.AsyncFor) -> None:
        whole = evaluate_eagerly(self.state, node.iter)
        bind(self.state, node.target, iterate(self.state, whole))
        self._loop(node, Loop(iterates_sides=self._iterates_sides(whole)))

    def _iterates_sides(self, whole: Value) -> bool:
        """Tell whether a loop iterates over training data and held-out data, in either order."""
        both = Tag.TRAIN | Tag.HELDOUT
        if whole.each is None or self.state.called_with(both):
            return False
        return any(not both & ~part.tags for part in whole.each.leaves())

    def while_(self, node: ast.While) -> None:
        evaluate(self.state, node.test)
        self._loop(node, Loop())

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, loop: Loop) -> None:
        loops = self.state.frame.loops
        loops.append(loop)
        self._body(node.body)
        loops.pop()
        if loop.measures:
            self.state.report(Milestone.TRAINING_LOSS)
            self.state.report(Milestone.TESTING_LOSS)
        if loop.trains:
            if loops and not loops[-1].builds:
                loops[-1].trains = True
            else:
                self.state.report(Milestone.TRAINED_MODEL)
        self._body(node.orelse)

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        frame = self.state.frame
        before = frame.no_grad
        for item in node.items:
            value = evaluate(self.state, item.context_expr)
            if item.optional_vars is not None:
                bind(self.state, item.optional_vars, value)
            frame.no_grad = frame.no_grad or _names_no_grad(self.state, item.context_expr)
        self._body(node.body)
        frame.no_grad = before

    def if_(self, node: ast.If) -> None:
        evaluate(self.state, node.test)
        self._body(node.body)
        self._body(node.orelse)

    def try_(self, node: ast.Try) -> None:
        for block in blocks_of(node):
            self._body(block)

    def match_(self, node: ast.Match) -> None:
        evaluate(self.state, node.subject)
        for case in node.cases:
            self._body(case.body)

    def function_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        function = self.state.function_of(node)
        self.state.frame.scope.bind(node.name, Value(callee=function))

    def class_definition(self, node: ast.ClassDef) -> None:
        made = self.state.class_of(node)
        bases = [evaluate(self.state, base) for base in node.bases]
        made.bases = [base.callee for base in bases if isinstance(base.callee, Class)]
        made.tags = _class_tags(bases)
        made.is_dataset = any(role_of(base.path) is Role.DATASET for base in bases)
        for statement in node.body:
            if isinstance(statement, FUNCTIONS):
                made.methods[statement.name] = self.state.function_of(statement, made)
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
                self._class_attribute(made, statement, evaluate(self.state, statement.value))
        self.state.frame.scope.bind(node.name, Value(callee=made))

    def _class_attribute(self, made: Class, node: ast.Assign | ast.AnnAssign, value: Value) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                made.set_attribute(target.id, value)


_HANDLERS: dict[type[ast.stmt], Callable[[_StatementAnalyzer, Any], None]] = {
    ast.Import: _StatementAnalyzer.import_,
    ast.ImportFrom: _StatementAnalyzer.import_,
    ast.Assign: _StatementAnalyzer.assignment,
    ast.AnnAssign: _StatementAnalyzer.annotated,
    ast.AugAssign: _StatementAnalyzer.augmented,
    ast.Return: _StatementAnalyzer.return_,
    ast.For: _StatementAnalyzer.for_,
    ast.AsyncFor: _StatementAnalyzer.for_,
    ast.While: _StatementAnalyzer.while_,
    ast.With: _StatementAnalyzer.with_,
    ast.AsyncWith: _StatementAnalyzer.with_,
    ast.If: _StatementAnalyzer.if_,
    ast.Try: _StatementAnalyzer.try_,
    ast.TryStar: _StatementAnalyzer.try_,
    ast.Match: _StatementAnalyzer.match_,
    ast.FunctionDef: _StatementAnalyzer.function_definition,
    ast.AsyncFunctionDef: _StatementAnalyzer.function_definition,
    ast.ClassDef: _StatementAnalyzer.class_definition,
}


def _class_tags(bases: list[Value]) -> Tags:
    roles = {role_of(base.path) for base in bases if base.path}
    tags = NO_TAGS
    for base in bases:
        if isinstance(base.callee, Class):
            tags |= base.callee.tags
    if Role.NETWORK in roles:
        return tags | ESTIMATOR
    if Role.TRANSFORMER in roles:
        return tags | Tag.TRANSFORMER
    return tags | Tag.MODEL if roles & {Role.MODEL, Role.META_MODEL} else tags


def _side_of_step(function: Function) -> Tags:
    """Return the side of the data that a package passes to a step of the program's network."""
    of_network = function.owner is not None and function.owner.tags & Tag.NETWORK
    return _STEPS.get(getattr(function.node, "name", ""), NO_TAGS) if of_network else NO_TAGS


def _is_no_grad(state: AnalysisState, node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(_names_no_grad(state, decorator) for decorator in decorators)


def _names_no_grad(state: AnalysisState, node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return role_of(evaluate(state, function).path) is Role.NO_GRAD
