"""Losses that a package writes down while it trains, told apart by the names of their keys."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from reward_server.instrument.static.bindings import names_in
from reward_server.instrument.static.scopes import side_of
from reward_server.instrument.static.values import NO_TAGS, NOTHING, SIDES, Tag, Tags, Value
from reward_server.model import Milestone

if TYPE_CHECKING:
    from reward_server.instrument.static.invocation import Invocation
    from reward_server.instrument.static.trace import Trace

_WATCHED = ("eval_set", "evals", "valid_sets", "validation_data")
_NUMBERED = re.compile(r"(?:validation|valid|eval)_(\d+)")
_NO_LOSSES = frozenset({"lr", "learning_rate", "epoch", "fit_time", "score_time", "estimator"})


def watch(trace: Trace, call: Invocation) -> None:
    """Remember on which data a model is measured while it trains, and where that is kept."""
    for name in _WATCHED:
        if name in call.keywords:
            trace.watched = tuple(part.tags & SIDES for part in call.keywords[name].items)
    for keyword in call.node.keywords:
        if keyword.arg == "evals_result" and isinstance(keyword.value, ast.Name):
            trace.frame.scope.bind(keyword.value.id, Value(Tag.HISTORY))
        if keyword.arg == "validation_data":
            _hold_out(trace, names_in(keyword.value) - names_in(*call.node.args))


def _hold_out(trace: Trace, names: set[str]) -> None:
    """Let data that a model is validated on, and not trained on, be held out from here on."""
    scope = trace.frame.scope
    for name in names:
        value = scope.look_up(name)
        if value.has(Tag.DATA | Tag.UNKNOWN) and value.tags & SIDES in (NO_TAGS, Tag.TRAIN):
            scope.bind(name, Value(value.tags & ~SIDES | Tag.HELDOUT))


def record(trace: Trace, call: Invocation) -> Value:
    """Let the dictionary given to a recording callback hold losses."""
    for argument in call.node.args[:1]:
        if isinstance(argument, ast.Name):
            trace.frame.scope.bind(argument.id, Value(Tag.HISTORY))
    return NOTHING


def show_history(trace: Trace, call: Invocation) -> bool:
    """Report the training losses of a history that is shown or tabled as a whole."""
    shown = zip(call.node.args, call.positional, strict=True)
    whole = any(value.has(Tag.HISTORY) and _is_history(node) for node, value in shown)
    if whole:
        trace.report(Milestone.TRAINING_LOSS)
    return whole


def walk_history(trace: Trace, call: Invocation) -> None:
    """Report the training losses of a history whose entries are gone through."""
    walked = call.node.func.value if isinstance(call.node.func, ast.Attribute) else call.node
    if call.receiver.has(Tag.HISTORY) and _is_history(walked):
        trace.report(Milestone.TRAINING_LOSS)


def _is_history(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "history"


def look_up_loss(trace: Trace, kept: Tags, key: str) -> Value:
    """Report which loss is taken out of a record by its name."""
    if key in _NO_LOSSES:
        return NOTHING
    numbered = _NUMBERED.fullmatch(key)
    number = int(numbered[1][:3]) if numbered else 0
    if numbered and number < len(trace.watched):
        held_out = trace.watched[number] != Tag.TRAIN
    elif key.startswith("val") or side_of(key):
        held_out = side_of(key) != Tag.TRAIN
    else:
        held_out = bool(kept & Tag.HELDOUT)
    trace.report(Milestone.TESTING_LOSS if held_out else Milestone.TRAINING_LOSS)
    return Value(Tag.METRIC)
