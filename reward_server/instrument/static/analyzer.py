"""Finds the steps of a solution in its syntax tree, without running or importing anything.

The program is walked a few times in source order. Each walk follows assignments (which name
holds training data, held-out data, the competition's test data, a model), what functions are
called with and what they return; the last walk reports. It fails closed: only calls to known
packages count, never a word in a string, a comment or a name of the program's own, nor a
package's function that the program has replaced.

Not covered: loops and comprehensions that happen to run zero times, data flow through globals
set in functions, functions called by a package (but for the objective of a study), attributes of
objects of unknown classes, code in strings (`exec`), names made by `globals()` or `setattr`.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

from reward_server.instrument.static import manual_weights
from reward_server.instrument.static.expressions import bind, evaluate, evaluate_eagerly, grow, take
from reward_server.instrument.static.library_roles import Role, role_of
from reward_server.instrument.static.missing_imports import forgotten_names
from reward_server.instrument.static.scopes import Class, Function, bind_import, names_a_metric
from reward_server.instrument.static.trace import Frame, Loop, Trace
from reward_server.instrument.static.values import (
    ESTIMATOR,
    FLOWING,
    NO_TAGS,
    NOTHING,
    UNKNOWN,
    Tag,
    Tags,
    Value,
    join,
)
from reward_server.model import Marker, Milestone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reward_server.instrument.static.trace import Place

_ROUNDS = 6
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
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
        events = _Walk().run(tree)
    except RecursionError:
        return ()
    imported = _last_import(tree.body, {place for place, _ in events})
    if imported is not None and _names_a_package(tree.body, imported):
        events.add((imported, Milestone.IMPORTED_PACKAGES))
    return tuple(Marker(*place, milestone) for place, milestone in sorted(events))


def _last_import(body: list[ast.stmt], events: set[Place]) -> Place | None:
    limit = min(events, default=None)
    found: Place | None = None
    for statement in body:
        place = statement.lineno, statement.col_offset
        if limit is not None and place > limit:
            break
        nested = [node for node in ast.walk(statement) if isinstance(node, ast.stmt)]
        if not any(_imports(node) for node in nested) or isinstance(statement, _DEFINITIONS):
            continue
        if any((node.lineno, node.col_offset) in events for node in nested):
            inner = [part for block in _blocks(statement) for part in block]
            found = _last_import(inner, events) or found
        else:
            found = place
    return found


def _names_a_package(body: list[ast.stmt], last: Place) -> bool:
    """Tell whether anything but the standard library is imported up to a place."""
    return any(
        top not in sys.stdlib_module_names
        for statement in body
        if (statement.lineno, statement.col_offset) <= last
        and not isinstance(statement, _DEFINITIONS)
        for node in ast.walk(statement)
        for top in _top_names(node)
    )


def _top_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [(node.module or "").partition(".")[0]]
    return []


def _imports(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module != "__future__"
    return isinstance(node, ast.Import)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, []):
            yield part.body


class _Walk:
    """Walks statements; what expressions do is told by `flow` and `calls`."""

    def __init__(self) -> None:
        self.trace = Trace()

    def run(self, tree: ast.Module) -> set[tuple[Place, Milestone]]:
        trace = self.trace
        trace.module.forgotten = forgotten_names(tree)
        for number in range(_ROUNDS):
            before = trace.learnt
            trace.start_round()
            self._body(tree.body)
            self._functions(called_only=number == 0)
            settled = number > 1 or not trace.defines_functions
            if number and settled and before == trace.learnt:
                break
        events = trace.events
        if not any(milestone is Milestone.PREDICTED_TEST_LABELS for _, milestone in events):
            events |= {(place, Milestone.PREDICTED_TEST_LABELS) for place in trace.guesses}
        return events

    def _functions(self, *, called_only: bool) -> None:
        queue = self.trace.queue
        position = 0
        walked: set[Function] = set()
        while position < len(queue):
            function = queue[position]
            position += 1
            if function not in walked and (function.called or not called_only):
                walked.add(function)
                self._function(function)
        queue.clear()

    def _function(self, function: Function) -> None:
        trace, node = self.trace, function.node
        function.scope.names.clear()
        trace.frame = Frame(function.scope, function, no_grad=_is_no_grad(trace, node))
        trace.statement = None
        self._parameters(function)
        function.returned = NOTHING
        function.returned_milestones.clear()
        if isinstance(node, ast.Lambda):
            function.returned = evaluate(trace, node.body)
        else:
            self._body(node.body)
        trace.settle_pending(function)

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
        before, self.trace.statement = self.trace.statement, node
        _HANDLERS.get(type(node), _Walk.plain)(self, node)
        self.trace.statement = before

    def plain(self, node: ast.stmt) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                evaluate(self.trace, child)

    def import_(self, node: ast.Import | ast.ImportFrom) -> None:
        bind_import(self.trace.frame.scope, node)

    def assignment(self, node: ast.Assign) -> None:
        unpacked = isinstance(node.targets[0], ast.Tuple | ast.List)
        value = (evaluate_eagerly if unpacked else evaluate)(self.trace, node.value)
        if not manual_weights.move(self.trace, node, value):
            self._assign(node.targets, node.value, value)

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign([node.target], node.value, evaluate(self.trace, node.value))

    def augmented(self, node: ast.AugAssign) -> None:
        value = evaluate(self.trace, node.value)
        if manual_weights.move(self.trace, node, value):
            return
        if isinstance(node.target, ast.Name):
            value = join(evaluate(self.trace, node.target), value)
            self._assign([node.target], node.target, value)
        else:
            grow(self.trace, node.target, value)

    def _assign(self, targets: list[ast.expr], node: ast.expr, value: Value) -> None:
        for target in targets:
            value = manual_weights.started(self.trace, target, node, value)
            metric = isinstance(target, ast.Name) and names_a_metric(target.id)
            bind(self.trace, target, self._measured(value) if metric else value)

    def _measured(self, value: Value) -> Value:
        if not value.has(Tag.REDUCED):
            return value
        self.trace.judge(Tag.METRIC, value.tags & FLOWING)
        return Value(value.tags & ~(Tag.LINEAR | Tag.REDUCED | Tag.PREDICTION) | Tag.METRIC)

    def return_(self, node: ast.Return) -> None:
        function = self.trace.frame.function
        if node.value is None or function is None:
            return
        value = evaluate(self.trace, node.value)
        if isinstance(function.node, _DEFINITIONS) and names_a_metric(function.node.name):
            value = self._measured(value)
        function.returned = join(function.returned, value)

    def for_(self, node: ast.For | ast.AsyncFor) -> None:
        whole = evaluate_eagerly(self.trace, node.iter)
        bind(self.trace, node.target, take(self.trace, whole))
        self._loop(node, Loop(walks_sides=self._walks_sides(whole)))

    def _walks_sides(self, whole: Value) -> bool:
        """Tell whether a loop takes training data and then held-out data, or the other way."""
        both = Tag.TRAIN | Tag.HELDOUT
        if whole.each is None or self.trace.is_given(both):
            return False
        return any(not both & ~part.tags for part in whole.each.leaves())

    def while_(self, node: ast.While) -> None:
        evaluate(self.trace, node.test)
        self._loop(node, Loop())

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, loop: Loop) -> None:
        loops = self.trace.frame.loops
        loops.append(loop)
        self._body(node.body)
        loops.pop()
        if loop.measures:
            self.trace.report(Milestone.TRAINING_LOSS)
            self.trace.report(Milestone.TESTING_LOSS)
        if loop.trains:
            if loops and not loops[-1].builds:
                loops[-1].trains = True
            else:
                self.trace.report(Milestone.TRAINED_MODEL)
        self._body(node.orelse)

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        frame = self.trace.frame
        before = frame.no_grad
        for item in node.items:
            value = evaluate(self.trace, item.context_expr)
            if item.optional_vars is not None:
                bind(self.trace, item.optional_vars, value)
            frame.no_grad = frame.no_grad or _names_no_grad(self.trace, item.context_expr)
        self._body(node.body)
        frame.no_grad = before

    def if_(self, node: ast.If) -> None:
        evaluate(self.trace, node.test)
        self._body(node.body)
        self._body(node.orelse)

    def try_(self, node: ast.Try) -> None:
        for block in _blocks(node):
            self._body(block)

    def match_(self, node: ast.Match) -> None:
        evaluate(self.trace, node.subject)
        for case in node.cases:
            self._body(case.body)

    def function_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        function = self.trace.function_of(node)
        self.trace.frame.scope.bind(node.name, Value(callee=function))

    def class_definition(self, node: ast.ClassDef) -> None:
        made = self.trace.class_of(node)
        bases = [evaluate(self.trace, base) for base in node.bases]
        made.bases = [base.callee for base in bases if isinstance(base.callee, Class)]
        made.tags = _class_tags(bases)
        made.is_dataset = any(role_of(base.path) is Role.DATASET for base in bases)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                made.methods[statement.name] = self.trace.function_of(statement, made)
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
                self._class_attribute(made, statement, evaluate(self.trace, statement.value))
        self.trace.frame.scope.bind(node.name, Value(callee=made))

    def _class_attribute(self, made: Class, node: ast.Assign | ast.AnnAssign, value: Value) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                made.set_attribute(target.id, value)


_HANDLERS: dict[type[ast.stmt], Callable[[_Walk, Any], None]] = {
    ast.Import: _Walk.import_,
    ast.ImportFrom: _Walk.import_,
    ast.Assign: _Walk.assignment,
    ast.AnnAssign: _Walk.annotated,
    ast.AugAssign: _Walk.augmented,
    ast.Return: _Walk.return_,
    ast.For: _Walk.for_,
    ast.AsyncFor: _Walk.for_,
    ast.While: _Walk.while_,
    ast.With: _Walk.with_,
    ast.AsyncWith: _Walk.with_,
    ast.If: _Walk.if_,
    ast.Try: _Walk.try_,
    ast.TryStar: _Walk.try_,
    ast.Match: _Walk.match_,
    ast.FunctionDef: _Walk.function_definition,
    ast.AsyncFunctionDef: _Walk.function_definition,
    ast.ClassDef: _Walk.class_definition,
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
    """Return the data that a package gives to a step of the program's own network."""
    of_network = function.owner is not None and function.owner.tags & Tag.NETWORK
    return _STEPS.get(getattr(function.node, "name", ""), NO_TAGS) if of_network else NO_TAGS


def _is_no_grad(trace: Trace, node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(_names_no_grad(trace, decorator) for decorator in decorators)


def _names_no_grad(trace: Trace, node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return role_of(evaluate(trace, function).path) is Role.NO_GRAD
