"""Models written out by hand: arrays of weights that a loop moves against their own error.

An array counts as weights once it is seen to be multiplied with data, the product compared with
the truth, and the array itself changed by that difference inside a loop. This is learnt over the
rounds of the walk; sums of predictions or of losses never get that far.
"""

from __future__ import annotations

import ast
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from reward_server.instrument.static.scopes import names_a_metric
from reward_server.instrument.static.values import FLOWING, NO_TAGS, Tag, Value
from reward_server.model import Milestone

if TYPE_CHECKING:
    from reward_server.instrument.static.trace import Trace

    Key = tuple[object, str]

_MOVES = (ast.Add, ast.Sub)
_GRADIENT = Tag.DATA, Tag.LINEAR, Tag.RESIDUAL
_NO_GRADIENT = Tag.METRIC | Tag.LOSS | Tag.TEST


def _moved(node: ast.Assign | ast.AugAssign) -> ast.expr | None:
    """Return the name that a statement moves (`w -= step`, `w = w - step`), if it does."""
    if isinstance(node, ast.AugAssign):
        return node.target if isinstance(node.op, _MOVES) else None
    value, target = node.value, node.targets[0]
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, _MOVES):
        return None
    same = ast.dump(value.left) == ast.dump(target).replace("Store()", "Load()")
    return target if same and isinstance(target, ast.Name | ast.Attribute) else None


def move(trace: Trace, node: ast.Assign | ast.AugAssign, step: Value) -> bool:
    """Tell whether a statement moves weights, and note that a loop changes an array by data."""
    target = _moved(node)
    key = _key_of(trace, target) if target is not None else None
    if key not in trace.arrays or not trace.frame.loops or not step.has(Tag.DATA):
        return False
    trace.updated.add(key)
    is_gradient = all(step.has(tag) for tag in _GRADIENT) and not step.has(_NO_GRADIENT)
    if is_gradient and not names_a_metric(key[1]):
        trace.weights.add(key)
    if key in trace.weights:
        trace.trains()
    return key in trace.weights


def started(trace: Trace, target: ast.expr, node: ast.expr, value: Value) -> Value:
    """Return the first value of an array, as weights if that is what it will become."""
    if value.tags & ~Tag.UNKNOWN or not isinstance(node, ast.Call | ast.BinOp):
        return value
    key = _key_of(trace, target)
    if key is None:
        return value
    trace.arrays.add(key)
    if key not in trace.updated:
        return value
    if key in trace.weights:
        trace.report(Milestone.DEFINED_MODEL)
        trace.built()
    return value.tagged(Tag.WEIGHTS)


def multiply(trace: Trace, left: Value, right: Value) -> Value:
    """Return the product of data and weights, which is a prediction."""
    weights = left.has(Tag.WEIGHTS) or right.has(Tag.WEIGHTS)
    factors = [value.tags for value in (left, right) if not value.has(Tag.WEIGHTS)]
    tags = reduce(or_, factors, NO_TAGS) & FLOWING
    if not weights or not tags & (Tag.DATA | Tag.UNKNOWN):
        return Value(tags)
    if tags & Tag.TEST and Milestone.TRAINED_MODEL in trace.seen:
        trace.judge(Tag.PREDICTION, tags)
    return Value(tags | Tag.PREDICTION | Tag.LINEAR)


def _key_of(trace: Trace, target: ast.expr) -> Key | None:
    if isinstance(target, ast.Name):
        return trace.frame.scope, target.id
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        owner = trace.frame.scope.look_up(target.value.id).instance
        return (owner, target.attr) if owner is not None else None
    return None
