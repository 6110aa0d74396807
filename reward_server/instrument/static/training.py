"""Training without a library's `fit`: weights that a loop updates, and recorded losses.

An array counts as weights once the program multiplies it with data, compares the product with
the truth and changes the array by that difference inside a loop. The analyzer learns this over
several passes; sums of predictions or of losses never get that far.

Losses that a package records while it trains are classified by the names of their keys.
"""

from __future__ import annotations

import ast
import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from reward_server.instrument.static.scopes import names_a_metric, side_of
from reward_server.instrument.static.values import (
    NO_TAGS,
    NOTHING,
    PROPAGATED,
    SIDES,
    Tag,
    Tags,
    Value,
)
from reward_server.instrument.syntax_tree import names_in
from reward_server.model import Milestone

if TYPE_CHECKING:
    from reward_server.instrument.static.scopes import Invocation
    from reward_server.instrument.static.state import AnalysisState

    Key = tuple[object, str]

_MOVES = (ast.Add, ast.Sub)
_GRADIENT = Tag.DATA, Tag.LINEAR, Tag.RESIDUAL
_NO_GRADIENT = Tag.METRIC | Tag.LOSS | Tag.TEST
_WATCHED = ("eval_set", "evals", "valid_sets", "validation_data")
_NUMBERED = re.compile(r"(?:validation|valid|eval)_(\d+)")
_NO_LOSSES = frozenset({"lr", "learning_rate", "epoch", "fit_time", "score_time", "estimator"})


def _updated_target(node: ast.Assign | ast.AugAssign) -> ast.expr | None:
    """Return the name that a statement changes by a step, as in `w -= step`."""
    if isinstance(node, ast.AugAssign):
        return node.target if isinstance(node.op, _MOVES) else None
    value, target = node.value, node.targets[0]
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, _MOVES):
        return None
    same = ast.dump(value.left) == ast.dump(target).replace("Store()", "Load()")
    return target if same and isinstance(target, ast.Name | ast.Attribute) else None


def update_weights(state: AnalysisState, node: ast.Assign | ast.AugAssign, step: Value) -> bool:
    """Note that a loop changes an array by data, and tell whether the array holds weights."""
    target = _updated_target(node)
    key = _weights_key(state, target) if target is not None else None
    if key not in state.arrays or not state.frame.loops or not step.has(Tag.DATA):
        return False
    state.updated.add(key)
    is_gradient = all(step.has(tag) for tag in _GRADIENT) and not step.has(_NO_GRADIENT)
    if is_gradient and not names_a_metric(key[1]):
        state.weights.add(key)
    if key in state.weights:
        state.trains()
    return key in state.weights


def initial_weights(state: AnalysisState, target: ast.expr, node: ast.expr, value: Value) -> Value:
    """Return the first value of an array, tagged as weights if it becomes weights later."""
    if value.tags & ~Tag.UNKNOWN or not isinstance(node, ast.Call | ast.BinOp):
        return value
    key = _weights_key(state, target)
    if key is None:
        return value
    state.arrays.add(key)
    if key not in state.updated:
        return value
    if key in state.weights:
        state.report(Milestone.DEFINED_MODEL)
        state.note_construction()
    return value.tagged(Tag.WEIGHTS)


def multiply(state: AnalysisState, left: Value, right: Value) -> Value:
    """Return the product of data and weights, which is a prediction."""
    weights = left.has(Tag.WEIGHTS) or right.has(Tag.WEIGHTS)
    factors = [value.tags for value in (left, right) if not value.has(Tag.WEIGHTS)]
    tags = reduce(or_, factors, NO_TAGS) & PROPAGATED
    if not weights or not tags & (Tag.DATA | Tag.UNKNOWN):
        return Value(tags)
    if tags & Tag.TEST and Milestone.TRAINED_MODEL in state.previous_milestones:
        state.record_result(Tag.PREDICTION, tags)
    return Value(tags | Tag.PREDICTION | Tag.LINEAR)


def _weights_key(state: AnalysisState, target: ast.expr) -> Key | None:
    if isinstance(target, ast.Name):
        return state.frame.scope, target.id
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        owner = state.frame.scope.look_up(target.value.id).instance
        return (owner, target.attr) if owner is not None else None
    return None


def note_evaluation_sets(state: AnalysisState, call: Invocation) -> None:
    """Remember on which data a model is evaluated while it trains, and where the losses go."""
    for name in _WATCHED:
        if name in call.keywords:
            state.evaluation_sets = tuple(part.tags & SIDES for part in call.keywords[name].items)
    for keyword in call.node.keywords:
        if keyword.arg == "evals_result" and isinstance(keyword.value, ast.Name):
            state.frame.scope.bind(keyword.value.id, Value(Tag.HISTORY))
        if keyword.arg == "validation_data":
            _mark_held_out(state, names_in(keyword.value) - names_in(*call.node.args))


def _mark_held_out(state: AnalysisState, names: set[str]) -> None:
    """Mark data as held out that a model is validated on and not trained on."""
    scope = state.frame.scope
    for name in names:
        value = scope.look_up(name)
        if value.has(Tag.DATA | Tag.UNKNOWN) and value.tags & SIDES in (NO_TAGS, Tag.TRAIN):
            scope.bind(name, Value(value.tags & ~SIDES | Tag.HELDOUT))


def record(state: AnalysisState, call: Invocation) -> Value:
    """Mark the dictionary passed to a recording callback as a history of losses."""
    for argument in call.node.args[:1]:
        if isinstance(argument, ast.Name):
            state.frame.scope.bind(argument.id, Value(Tag.HISTORY))
    return NOTHING


def show_history(state: AnalysisState, call: Invocation) -> bool:
    """Report the training losses of a history that is printed or tabulated whole."""
    shown = zip(call.node.args, call.positional, strict=True)
    whole = any(value.has(Tag.HISTORY) and _is_history(node) for node, value in shown)
    if whole:
        state.report(Milestone.TRAINING_LOSS)
    return whole


def report_history_items(state: AnalysisState, call: Invocation) -> None:
    """Report the training losses of a history whose entries are iterated over."""
    record = call.node.func.value if isinstance(call.node.func, ast.Attribute) else call.node
    if call.receiver.has(Tag.HISTORY) and _is_history(record):
        state.report(Milestone.TRAINING_LOSS)


def _is_history(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "history"


def look_up_loss(state: AnalysisState, kept: Tags, key: str) -> Value:
    """Report which loss a key takes out of a history."""
    if key in _NO_LOSSES:
        return NOTHING
    numbered = _NUMBERED.fullmatch(key)
    number = int(numbered[1][:3]) if numbered else 0
    if numbered and number < len(state.evaluation_sets):
        held_out = state.evaluation_sets[number] != Tag.TRAIN
    elif key.startswith("val") or side_of(key):
        held_out = side_of(key) != Tag.TRAIN
    else:
        held_out = bool(kept & Tag.HELDOUT)
    state.report(Milestone.TESTING_LOSS if held_out else Milestone.TRAINING_LOSS)
    return Value(Tag.METRIC)
