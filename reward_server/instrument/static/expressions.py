"""The value of an expression, one rule per kind of syntax node.

An expression that may not run when its statement does (the right side of `and`, one arm of a
conditional, a generator that nothing consumes) reports nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from reward_server.instrument.static import library_names as names
from reward_server.instrument.static.calls import apply
from reward_server.instrument.static.scopes import (
    Class,
    Invocation,
    side_of,
    side_of_path,
    side_of_rows,
)
from reward_server.instrument.static.training import look_up_loss, multiply
from reward_server.instrument.static.values import (
    ESTIMATOR,
    NO_TAGS,
    NOTHING,
    PROPAGATED,
    SIDES,
    Tag,
    Tags,
    Value,
    iterable,
    join,
    join_all,
    sequence,
    union,
)
from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.static.state import AnalysisState

    Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp

_AMBIGUOUS = Tag.TRAIN | Tag.TEST
_DATA_LIKE = Tag.DATA | Tag.UNKNOWN
_LOOKED_UP = Tag.DATA | Tag.PREDICTION | SIDES


def evaluate(state: AnalysisState, node: ast.expr) -> Value:
    """Return the value of an expression, reporting every step taken in it."""
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(state, node)
    children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return Value(union([evaluate(state, child) for child in children]) & PROPAGATED)


def bind(state: AnalysisState, target: ast.expr, value: Value) -> None:
    """Bind the targets of an assignment to the parts of a value."""
    if isinstance(target, ast.Name):
        state.frame.scope.bind(target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        star_imports = any(isinstance(part, ast.Starred) for part in target.elts)
        for index, part in enumerate(target.elts):
            bind(
                state,
                part,
                value.element() if star_imports else value.part(index, len(target.elts)),
            )
    elif isinstance(target, ast.Starred):
        bind(state, target.value, value)
    elif isinstance(target, ast.Attribute):
        _set_attribute(state, target, value)
    elif isinstance(target, ast.Subscript):
        add_to_container(state, target, value)


def _set_attribute(state: AnalysisState, target: ast.Attribute, value: Value) -> None:
    owner = evaluate(state, target.value)
    if owner.path:
        state.replaced |= {owner.path, f"{owner.path}.{target.attr}"}
    elif owner.instance is not None and target.attr not in names.ESTIMATOR_METHODS:
        owner.instance.set_attribute(target.attr, value)
    elif owner.tags & ~PROPAGATED and target.attr in names.REPLACEABLE_MEMBERS:
        bind(state, target.value, NOTHING)


def add_to_container(state: AnalysisState, container: ast.expr, value: Value) -> None:
    """Add a value to what a container holds."""
    if isinstance(container, ast.Subscript):
        index = evaluate(state, container.slice)
        add_to_container(state, container.value, value.tagged(_tags_from_index(value, index)))
        return
    if not isinstance(container, ast.Name | ast.Attribute):
        return
    before = evaluate(state, container)
    if before.path or before.callee:
        return
    tags = value.tags & ~SIDES if before.has(SIDES) else value.tags
    if value.has(ESTIMATOR) or before.each is not None:
        before = join(before, iterable(value))
    bind(state, container, before.tagged(tags))


def _tags_from_index(value: Value, index: Value) -> Tags:
    """Return the data tags of an index, if the value stored there has no tags of its own."""
    return NO_TAGS if value.tags else index.tags & (Tag.DATA | SIDES)


def iterate_over(state: AnalysisState, node: ast.expr) -> Value:
    """Return what iterating over an expression yields; iterating over a file reads it."""
    return iterate(state, evaluate_eagerly(state, node))


def iterate(state: AnalysisState, value: Value) -> Value:
    """Return what iterating over a value yields; iterating over a file reads it."""
    return state.report_load(value.tags) if value.has(Tag.FILE) else value.element()


def evaluate_eagerly(state: AnalysisState, node: ast.expr) -> Value:
    """Return the value of an expression whose generator, if it is one, will be consumed."""
    if isinstance(node, ast.GeneratorExp):
        return _comprehension(state, node, [node.elt])
    if isinstance(node, ast.Starred):
        return evaluate_eagerly(state, node.value).element()
    return evaluate(state, node)


def _name(state: AnalysisState, node: ast.Name) -> Value:
    if node.id == "__file__":
        return Value(Tag.NOT_TASK_DATA)
    return state.frame.scope.look_up(node.id)


def _constant(_: AnalysisState, node: ast.Constant) -> Value:
    return Value(side_of_path(node.value)) if isinstance(node.value, str) else NOTHING


def _attribute(state: AnalysisState, node: ast.Attribute) -> Value:
    return _attribute_of(state, evaluate(state, node.value), node.attr)


def _attribute_of(state: AnalysisState, base: Value, name: str) -> Value:
    if base.path:
        return Value(path=f"{base.path}.{name}"[:200])
    owner = base.callee if isinstance(base.callee, Class) else base.instance
    if owner is not None and (found := owner.member(name)) is not None:
        return found
    if milestone := _loss_attribute(state, base, name):
        state.report(milestone)
        return Value(Tag.LOSS if base.has(Tag.PREDICTION) else Tag.METRIC)
    if base.has(ESTIMATOR) and name in names.ATTRIBUTES["record"]:
        return Value(Tag.HISTORY)
    if base.has(Tag.MODEL) and name in names.ATTRIBUTES["model"]:
        return base
    kept = Tag.HISTORY if name == "history" else PROPAGATED | Tag.FILE_PATH
    return NOTHING if name in names.ATTRIBUTES["plain"] else Value(base.tags & kept)


def _loss_attribute(state: AnalysisState, base: Value, name: str) -> Milestone | None:
    """Return which loss an attribute holds, if it holds one."""
    if base.has(Tag.MODEL) and name in names.ATTRIBUTES["heldout"]:
        return Milestone.TESTING_LOSS
    if base.has(Tag.STUDY) and state.study_is_scored and name in names.ATTRIBUTES["study"]:
        return Milestone.TESTING_LOSS
    if base.has(Tag.MODEL | Tag.TRAINER) and name in names.ATTRIBUTES["training"]:
        return Milestone.TRAINING_LOSS
    if base.has(Tag.PREDICTION) and not base.has(Tag.LOSS) and name == "loss":
        held_out = base.has(Tag.HELDOUT | Tag.TEST) or state.frame.no_grad
        return Milestone.TESTING_LOSS if held_out else Milestone.TRAINING_LOSS
    return None


def _call(state: AnalysisState, node: ast.Call) -> Value:
    receiver, method = NOTHING, ""
    if isinstance(node.func, ast.Attribute):
        method, receiver = node.func.attr, evaluate(state, node.func.value)
        function = _attribute_of(state, receiver, method)
    else:
        function = evaluate(state, node.func)
    positional = tuple(evaluate_eagerly(state, argument) for argument in node.args)
    keywords = {
        keyword.arg or "**": evaluate_eagerly(state, keyword.value) for keyword in node.keywords
    }
    if method in names.METHODS["grow"] and positional and isinstance(node.func, ast.Attribute):
        add_to_container(state, node.func.value, join_all(positional))
    return apply(state, Invocation(node, function, receiver, method, positional, keywords))


def _subscript(state: AnalysisState, node: ast.Subscript) -> Value:
    base = evaluate(state, node.value)
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if base.has(Tag.HISTORY) and not base.has(ESTIMATOR) and (keys := _keys(node.slice)):
        return join_all(look_up_loss(state, base.tags, key) for key in keys)
    index = evaluate(state, node.slice)
    if base.path:
        return Value(index.tags & PROPAGATED)
    if isinstance(key, int) and -len(base.items) <= key < len(base.items):
        return base.items[key]
    if base.each is not None:
        looked_up = index.tags & _LOOKED_UP if index.has(Tag.DATA) else NO_TAGS
        return base.each if base.each.has(ESTIMATOR) else base.each.tagged(looked_up)
    tags = base.tags
    if not (isinstance(node.slice, ast.Slice) and state.called_with(_AMBIGUOUS)):
        tags = _select_side(base.tags, index.tags, node.slice, key)
    tags |= index.tags & Tag.PREDICTION
    labelled = base.has(Tag.LINEAR) and index.has(Tag.DATA) and not index.has(Tag.PREDICTION)
    return Value(tags | Tag.RESIDUAL if labelled else tags)


def _keys(node: ast.expr) -> list[str]:
    """Return the keys of a lookup that are string literals."""
    parts = node.elts if isinstance(node, ast.List) else [node]
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def _select_side(base: Tags, index: Tags, node: ast.expr, key: object) -> Tags:
    rows = node.elts[0] if isinstance(node, ast.Tuple) and node.elts else node
    if isinstance(rows, ast.Slice):
        if not _AMBIGUOUS & ~base and bool(rows.lower) != bool(rows.upper):
            return base & ~SIDES | (Tag.TEST if rows.lower else Tag.TRAIN)
        if base & SIDES == Tag.TRAIN and _takes_remainder(rows):
            return base & ~SIDES | Tag.HELDOUT
        return base
    named = rows.id if isinstance(rows, ast.Name) else ""
    if named and base & SIDES == Tag.TRAIN and not index & SIDES:
        hint = side_of_rows(named)
        return base & ~SIDES | (Tag.HELDOUT if hint and hint != Tag.TRAIN else Tag.TRAIN)
    hint = side_of(key) if isinstance(key, str) else index & SIDES
    if {hint, base & SIDES} == {Tag.TRAIN, Tag.TEST}:
        return base  # an index of shared columns says nothing about rows
    chosen = bool(hint) and (not hint & ~base if isinstance(key, str) else bool(index & _DATA_LIKE))
    return base & ~SIDES | hint if chosen else base


def _takes_remainder(rows: ast.Slice) -> bool:
    """Tell whether a slice takes what an earlier one left, as in `train[n:]`."""
    first = isinstance(rows.lower, ast.Constant) and rows.lower.value in (0, 1, None)
    return rows.lower is not None and rows.upper is None and rows.step is None and not first


def _sequence(state: AnalysisState, node: ast.Tuple | ast.List | ast.Set) -> Value:
    return sequence([evaluate_eagerly(state, part) for part in node.elts])


def _dict(state: AnalysisState, node: ast.Dict) -> Value:
    for key in node.keys:
        if key is not None:
            evaluate(state, key)
    values = sequence([evaluate(state, value) for value in node.values])
    return Value(values.tags, each=values.each, depth=values.depth)


def _comprehension(state: AnalysisState, node: Comprehension, elements: list[ast.expr]) -> Value:
    first = node.generators[0].iter
    never = isinstance(first, ast.List | ast.Tuple) and not first.elts
    with state.muting(when=never):
        for generator in node.generators:
            bind(state, generator.target, iterate_over(state, generator.iter))
            chosen = union([evaluate(state, condition) for condition in generator.ifs])
        found = [evaluate(state, element) for element in elements][-1]
        return iterable(found.tagged(chosen & Tag.PREDICTION))


def _generated(state: AnalysisState, node: ast.GeneratorExp) -> Value:
    with state.muting():
        return _comprehension(state, node, [node.elt])


def _bool_op(state: AnalysisState, node: ast.BoolOp) -> Value:
    values = [evaluate(state, node.values[0])]
    with state.muting():
        values += [evaluate(state, value) for value in node.values[1:]]
    return join_all(values)


def _conditional(state: AnalysisState, node: ast.IfExp) -> Value:
    chosen = evaluate(state, node.test).tags & Tag.PREDICTION
    with state.collecting() as first:
        value = evaluate(state, node.body)
    with state.collecting() as second:
        other = evaluate(state, node.orelse)
    for milestone in first & second:
        state.report(milestone)
    return join(value, other).tagged(chosen)


def _binary(state: AnalysisState, node: ast.BinOp) -> Value:
    left, right = evaluate(state, node.left), evaluate(state, node.right)
    if isinstance(node.op, ast.MatMult):
        return multiply(state, left, right)
    tags = (left.tags | right.tags) & (PROPAGATED | Tag.FILE_PATH)
    return Value(tags | _residual(left, right))


def _comparison(state: AnalysisState, node: ast.Compare) -> Value:
    left = evaluate(state, node.left)
    rights = [evaluate(state, right) for right in node.comparators]
    return Value((left.tags | union(rights)) & PROPAGATED | _residual(left, rights[0]))


def _residual(left: Value, right: Value) -> Tags:
    if left.has(Tag.WEIGHTS) or right.has(Tag.WEIGHTS):
        return NO_TAGS
    compared = left.has(Tag.PREDICTION) != right.has(Tag.PREDICTION)
    unknown = left.has(Tag.UNKNOWN) and right.has(Tag.UNKNOWN)
    if unknown or (compared and left.has(_DATA_LIKE) and right.has(_DATA_LIKE)):
        return Tag.RESIDUAL
    return NO_TAGS


def _named(state: AnalysisState, node: ast.NamedExpr) -> Value:
    value = evaluate(state, node.value)
    bind(state, node.target, value)
    return value


_RULES: dict[type[ast.expr], Callable[[AnalysisState, Any], Value]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.ListComp: lambda state, node: _comprehension(state, node, [node.elt]),
    ast.SetComp: lambda state, node: _comprehension(state, node, [node.elt]),
    ast.DictComp: lambda state, node: _comprehension(state, node, [node.key, node.value]),
    ast.GeneratorExp: _generated,
    ast.BoolOp: _bool_op,
    ast.IfExp: _conditional,
    ast.BinOp: _binary,
    ast.Compare: _comparison,
    ast.Lambda: lambda state, node: Value(callee=state.function_of(node)),
    ast.NamedExpr: _named,
    ast.Await: lambda state, node: evaluate(state, node.value),
}
