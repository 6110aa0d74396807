"""The value of an expression, one rule per kind of syntax node.

Whatever may not be evaluated when its statement is (the right side of `and`, one arm of a
conditional, a generator nobody consumes) reports nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from reward_server.instrument.static import vocabulary
from reward_server.instrument.static.calls import apply
from reward_server.instrument.static.invocation import Invocation
from reward_server.instrument.static.manual_weights import multiply
from reward_server.instrument.static.scopes import Class, side_of, side_of_path, side_of_rows
from reward_server.instrument.static.training_history import look_up_loss
from reward_server.instrument.static.values import (
    ESTIMATOR,
    FLOWING,
    NO_TAGS,
    NOTHING,
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

    from reward_server.instrument.static.trace import Trace

    Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp

_AMBIGUOUS = Tag.TRAIN | Tag.TEST
_PLACED = Tag.DATA | Tag.UNKNOWN
_LOOKED_UP = Tag.DATA | Tag.PREDICTION | SIDES


def evaluate(trace: Trace, node: ast.expr) -> Value:
    """Return the value of an expression, reporting every step taken in it."""
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(trace, node)
    children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return Value(union([evaluate(trace, child) for child in children]) & FLOWING)


def bind(trace: Trace, target: ast.expr, value: Value) -> None:
    """Let the targets of an assignment stand for the parts of a value."""
    if isinstance(target, ast.Name):
        trace.frame.scope.bind(target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        starred = any(isinstance(part, ast.Starred) for part in target.elts)
        for index, part in enumerate(target.elts):
            bind(trace, part, value.element() if starred else value.part(index, len(target.elts)))
    elif isinstance(target, ast.Starred):
        bind(trace, target.value, value)
    elif isinstance(target, ast.Attribute):
        _set_attribute(trace, target, value)
    elif isinstance(target, ast.Subscript):
        grow(trace, target, value)


def _set_attribute(trace: Trace, target: ast.Attribute, value: Value) -> None:
    owner = evaluate(trace, target.value)
    if owner.path:
        trace.replaced |= {owner.path, f"{owner.path}.{target.attr}"}
    elif owner.instance is not None and target.attr not in vocabulary.ESTIMATOR_METHODS:
        owner.instance.set_attribute(target.attr, value)
    elif owner.tags & ~FLOWING and target.attr in vocabulary.FORGEABLE:
        bind(trace, target.value, NOTHING)


def grow(trace: Trace, container: ast.expr, value: Value) -> None:
    """Let a container hold a value beside what it holds already."""
    if isinstance(container, ast.Subscript):
        index = evaluate(trace, container.slice)
        grow(trace, container.value, value.tagged(_counted(value, index)))
        return
    if not isinstance(container, ast.Name | ast.Attribute):
        return
    before = evaluate(trace, container)
    if before.path or before.callee:
        return
    tags = value.tags & ~SIDES if before.has(SIDES) else value.tags
    if value.has(ESTIMATOR) or before.each is not None:
        before = join(before, iterable(value))
    bind(trace, container, before.tagged(tags))


def _counted(value: Value, index: Value) -> Tags:
    """Return what a place in a table tells of the data, when what is put there tells nothing."""
    return NO_TAGS if value.tags else index.tags & (Tag.DATA | SIDES)


def consume(trace: Trace, node: ast.expr) -> Value:
    """Return what iterating over an expression gives; iterating over a file reads it."""
    return take(trace, evaluate_eagerly(trace, node))


def take(trace: Trace, value: Value) -> Value:
    """Return what iterating over a value gives; iterating over a file reads it."""
    return trace.loaded(value.tags) if value.has(Tag.FILE) else value.element()


def evaluate_eagerly(trace: Trace, node: ast.expr) -> Value:
    """Return the value of an expression whose generator, if it is one, will be consumed."""
    if isinstance(node, ast.GeneratorExp):
        return _comprehension(trace, node, [node.elt])
    if isinstance(node, ast.Starred):
        return evaluate_eagerly(trace, node.value).element()
    return evaluate(trace, node)


def _name(trace: Trace, node: ast.Name) -> Value:
    if node.id == "__file__":
        return Value(Tag.ELSEWHERE)
    return trace.frame.scope.look_up(node.id)


def _constant(_: Trace, node: ast.Constant) -> Value:
    return Value(side_of_path(node.value)) if isinstance(node.value, str) else NOTHING


def _attribute(trace: Trace, node: ast.Attribute) -> Value:
    return _attribute_of(trace, evaluate(trace, node.value), node.attr)


def _attribute_of(trace: Trace, base: Value, name: str) -> Value:
    if base.path:
        return Value(path=f"{base.path}.{name}"[:200])
    owner = base.callee if isinstance(base.callee, Class) else base.instance
    if owner is not None and (found := owner.member(name)) is not None:
        return found
    if milestone := _recorded(trace, base, name):
        trace.report(milestone)
        return Value(Tag.LOSS if base.has(Tag.PREDICTION) else Tag.METRIC)
    if base.has(ESTIMATOR) and name in vocabulary.RECORD_ATTRIBUTES:
        return Value(Tag.HISTORY)
    if base.has(Tag.MODEL) and name in vocabulary.MODEL_ATTRIBUTES:
        return base
    kept = Tag.HISTORY if name == "history" else FLOWING | Tag.FILE_PATH
    return NOTHING if name in vocabulary.PLAIN_ATTRIBUTES else Value(base.tags & kept)


def _recorded(trace: Trace, base: Value, name: str) -> Milestone | None:
    """Return which loss an attribute holds, if it holds one."""
    if base.has(Tag.MODEL) and name in vocabulary.HELDOUT_ATTRIBUTES:
        return Milestone.TESTING_LOSS
    if base.has(Tag.STUDY) and trace.studied and name in vocabulary.STUDY_ATTRIBUTES:
        return Milestone.TESTING_LOSS
    if base.has(Tag.MODEL | Tag.TRAINER) and name in vocabulary.TRAINING_ATTRIBUTES:
        return Milestone.TRAINING_LOSS
    if base.has(Tag.PREDICTION) and not base.has(Tag.LOSS) and name == "loss":
        held_out = base.has(Tag.HELDOUT | Tag.TEST) or trace.frame.no_grad
        return Milestone.TESTING_LOSS if held_out else Milestone.TRAINING_LOSS
    return None


def _call(trace: Trace, node: ast.Call) -> Value:
    receiver, method = NOTHING, ""
    if isinstance(node.func, ast.Attribute):
        method, receiver = node.func.attr, evaluate(trace, node.func.value)
        function = _attribute_of(trace, receiver, method)
    else:
        function = evaluate(trace, node.func)
    positional = tuple(evaluate_eagerly(trace, argument) for argument in node.args)
    keywords = {
        keyword.arg or "**": evaluate_eagerly(trace, keyword.value) for keyword in node.keywords
    }
    if method in vocabulary.GROW_METHODS and positional and isinstance(node.func, ast.Attribute):
        grow(trace, node.func.value, join_all(positional))
    return apply(trace, Invocation(node, function, receiver, method, positional, keywords))


def _subscript(trace: Trace, node: ast.Subscript) -> Value:
    base = evaluate(trace, node.value)
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if base.has(Tag.HISTORY) and not base.has(ESTIMATOR) and (keys := _keys(node.slice)):
        return join_all(look_up_loss(trace, base.tags, key) for key in keys)
    index = evaluate(trace, node.slice)
    if base.path:
        return Value(index.tags & FLOWING)
    if isinstance(key, int) and -len(base.items) <= key < len(base.items):
        return base.items[key]
    if base.each is not None:
        looked_up = index.tags & _LOOKED_UP if index.has(Tag.DATA) else NO_TAGS
        return base.each if base.each.has(ESTIMATOR) else base.each.tagged(looked_up)
    tags = base.tags
    if not (isinstance(node.slice, ast.Slice) and trace.is_given(_AMBIGUOUS)):
        tags = _selected(base.tags, index.tags, node.slice, key)
    tags |= index.tags & Tag.PREDICTION
    labelled = base.has(Tag.LINEAR) and index.has(Tag.DATA) and not index.has(Tag.PREDICTION)
    return Value(tags | Tag.RESIDUAL if labelled else tags)


def _keys(node: ast.expr) -> list[str]:
    """Return the names by which something is looked up, if they are written out."""
    parts = node.elts if isinstance(node, ast.List) else [node]
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def _selected(base: Tags, index: Tags, node: ast.expr, key: object) -> Tags:
    rows = node.elts[0] if isinstance(node, ast.Tuple) and node.elts else node
    if isinstance(rows, ast.Slice):
        if not _AMBIGUOUS & ~base and bool(rows.lower) != bool(rows.upper):
            return base & ~SIDES | (Tag.TEST if rows.lower else Tag.TRAIN)
        if base & SIDES == Tag.TRAIN and _is_the_rest(rows):
            return base & ~SIDES | Tag.HELDOUT
        return base
    named = rows.id if isinstance(rows, ast.Name) else ""
    if named and base & SIDES == Tag.TRAIN and not index & SIDES:
        hint = side_of_rows(named)
        return base & ~SIDES | (Tag.HELDOUT if hint and hint != Tag.TRAIN else Tag.TRAIN)
    hint = side_of(key) if isinstance(key, str) else index & SIDES
    if {hint, base & SIDES} == {Tag.TRAIN, Tag.TEST}:
        return base  # columns that both have: no row of one is a row of the other
    chosen = bool(hint) and (not hint & ~base if isinstance(key, str) else bool(index & _PLACED))
    return base & ~SIDES | hint if chosen else base


def _is_the_rest(rows: ast.Slice) -> bool:
    """Tell whether a slice takes what an earlier one has left, as in `train[n:]`."""
    first = isinstance(rows.lower, ast.Constant) and rows.lower.value in (0, 1, None)
    return rows.lower is not None and rows.upper is None and rows.step is None and not first


def _display(trace: Trace, node: ast.Tuple | ast.List | ast.Set) -> Value:
    return sequence([evaluate_eagerly(trace, part) for part in node.elts])


def _dict(trace: Trace, node: ast.Dict) -> Value:
    for key in node.keys:
        if key is not None:
            evaluate(trace, key)
    values = sequence([evaluate(trace, value) for value in node.values])
    return Value(values.tags, each=values.each, depth=values.depth)


def _comprehension(trace: Trace, node: Comprehension, elements: list[ast.expr]) -> Value:
    first = node.generators[0].iter
    never = isinstance(first, ast.List | ast.Tuple) and not first.elts
    with trace.muting(when=never):
        for generator in node.generators:
            bind(trace, generator.target, consume(trace, generator.iter))
            chosen = union([evaluate(trace, condition) for condition in generator.ifs])
        found = [evaluate(trace, element) for element in elements][-1]
        return iterable(found.tagged(chosen & Tag.PREDICTION))


def _listed(trace: Trace, node: ast.ListComp | ast.SetComp) -> Value:
    return _comprehension(trace, node, [node.elt])


def _mapped(trace: Trace, node: ast.DictComp) -> Value:
    return _comprehension(trace, node, [node.key, node.value])


def _generated(trace: Trace, node: ast.GeneratorExp) -> Value:
    with trace.muting():
        return _comprehension(trace, node, [node.elt])


def _either(trace: Trace, node: ast.BoolOp) -> Value:
    values = [evaluate(trace, node.values[0])]
    with trace.muting():
        values += [evaluate(trace, value) for value in node.values[1:]]
    return join_all(values)


def _conditional(trace: Trace, node: ast.IfExp) -> Value:
    chosen = evaluate(trace, node.test).tags & Tag.PREDICTION
    with trace.collecting() as first:
        value = evaluate(trace, node.body)
    with trace.collecting() as second:
        other = evaluate(trace, node.orelse)
    for milestone in first & second:
        trace.report(milestone)
    return join(value, other).tagged(chosen)


def _binary(trace: Trace, node: ast.BinOp) -> Value:
    left, right = evaluate(trace, node.left), evaluate(trace, node.right)
    if isinstance(node.op, ast.MatMult):
        return multiply(trace, left, right)
    tags = (left.tags | right.tags) & (FLOWING | Tag.FILE_PATH)
    return Value(tags | _residual(left, right))


def _comparison(trace: Trace, node: ast.Compare) -> Value:
    left = evaluate(trace, node.left)
    rights = [evaluate(trace, right) for right in node.comparators]
    return Value((left.tags | union(rights)) & FLOWING | _residual(left, rights[0]))


def _residual(left: Value, right: Value) -> Tags:
    if left.has(Tag.WEIGHTS) or right.has(Tag.WEIGHTS):
        return NO_TAGS
    compared = left.has(Tag.PREDICTION) != right.has(Tag.PREDICTION)
    unknown = left.has(Tag.UNKNOWN) and right.has(Tag.UNKNOWN)
    if unknown or (compared and left.has(_PLACED) and right.has(_PLACED)):
        return Tag.RESIDUAL
    return NO_TAGS


def _lambda(trace: Trace, node: ast.Lambda) -> Value:
    return Value(callee=trace.function_of(node))


def _named(trace: Trace, node: ast.NamedExpr) -> Value:
    value = evaluate(trace, node.value)
    bind(trace, node.target, value)
    return value


def _awaited(trace: Trace, node: ast.Await) -> Value:
    return evaluate(trace, node.value)


_RULES: dict[type[ast.expr], Callable[[Trace, Any], Value]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Tuple: _display,
    ast.List: _display,
    ast.Set: _display,
    ast.Dict: _dict,
    ast.ListComp: _listed,
    ast.SetComp: _listed,
    ast.DictComp: _mapped,
    ast.GeneratorExp: _generated,
    ast.BoolOp: _either,
    ast.IfExp: _conditional,
    ast.BinOp: _binary,
    ast.Compare: _comparison,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.Await: _awaited,
}
