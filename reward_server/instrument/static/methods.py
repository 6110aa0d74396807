"""What a method call does, decided by what is known of its receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.instrument.static import library_names as names
from reward_server.instrument.static.data_sources import opens_for_reading
from reward_server.instrument.static.scopes import Function, bind_parameters
from reward_server.instrument.static.training import (
    multiply,
    note_evaluation_sets,
    report_history_items,
)
from reward_server.instrument.static.values import (
    ESTIMATOR,
    NOTHING,
    ORIGINS,
    PROPAGATED,
    SIDES,
    Tag,
    Tags,
    Value,
    iterable,
    reduced,
    sequence,
)
from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.static.scopes import Invocation
    from reward_server.instrument.static.state import AnalysisState

    Rule = Callable[[AnalysisState, Invocation], Value | None]

_KNOWN_DATA = Tag.DATA | Tag.UNKNOWN
_FOLDS = iterable(sequence([Value(Tag.DATA | Tag.TRAIN), Value(Tag.DATA | Tag.HELDOUT)]))


def apply_method(state: AnalysisState, call: Invocation) -> Value | None:
    """Report what a method does by its receiver; nothing if its name means nothing here."""
    receiver, method = call.receiver, call.method
    own = receiver.instance is not None and method in receiver.instance.methods
    if own and not (receiver.has(Tag.MODEL) and not receiver.has(Tag.NETWORK)):
        return None
    if receiver.has(Tag.TRAINER) and method in ("fit", "train"):
        state.report(Milestone.TRAINED_MODEL)
        return receiver
    if receiver.has(Tag.TRAINER) and method in names.METHODS["trainer"]:
        return _evaluate(state, call)
    for methods, needed, rule in _METHODS:
        if method in methods:
            return rule(state, call) if receiver.has(needed) or needed is _ANY else None
    return None


def _fit(state: AnalysisState, call: Invocation) -> Value | None:
    receiver = call.receiver
    if receiver.has(Tag.TRANSFORMER) and not receiver.has(Tag.MODEL):
        return receiver
    guess = receiver.has(Tag.UNKNOWN) and len(call.positional) > 0
    if receiver.has(ESTIMATOR) or (guess and Milestone.DEFINED_MODEL in state.previous_milestones):
        state.report(Milestone.TRAINED_MODEL)
        note_evaluation_sets(state, call)
        _bind_callee(call)
        return receiver.tagged(Tag.MODEL | Tag.HISTORY)
    return None


def _bind_callee(call: Invocation) -> None:
    if isinstance(call.function.callee, Function):
        bind_parameters(call.function.callee, call)


def _predict(state: AnalysisState, call: Invocation) -> Value | None:
    guess = call.receiver.has(Tag.UNKNOWN) and Milestone.DEFINED_MODEL in state.previous_milestones
    if not (call.receiver.has(ESTIMATOR | Tag.TRAINER) or guess):
        return None
    _bind_callee(call)
    tags = call.arguments & PROPAGATED
    if call.method == "forecast":
        tags |= Tag.DATA
    state.record_result(Tag.PREDICTION, tags)
    return Value(tags | Tag.PREDICTION)


def _score(state: AnalysisState, call: Invocation) -> Value | None:
    if not call.arguments & _KNOWN_DATA:
        return None
    _bind_callee(call)
    tags = call.arguments & PROPAGATED | Tag.PREDICTION
    state.record_result(Tag.METRIC, Tag.PREDICTION, *call.data)
    return Value(tags & ~Tag.PREDICTION | Tag.METRIC)


def _read(state: AnalysisState, call: Invocation) -> Value | None:
    return state.report_load(call.receiver.tags)


def _open_member(_: AnalysisState, call: Invocation) -> Value | None:
    mode = 0 if call.receiver.has(Tag.FILE_PATH) else 1
    tags = (call.arguments | call.receiver.tags) & ORIGINS
    return Value(tags | Tag.FILE) if opens_for_reading(call.node, mode) else NOTHING


def _take_items(state: AnalysisState, call: Invocation) -> Value | None:
    report_history_items(state, call)
    return iterable(sequence([NOTHING, call.receiver.element()]))


def _take_one(_: AnalysisState, call: Invocation) -> Value | None:
    if call.first.has(Tag.DATA):
        return Value(call.first.tags & PROPAGATED)
    return call.receiver.element() if call.receiver.each is not None else None


def _backward(state: AnalysisState, _: Invocation) -> Value | None:
    state.trains()
    return None


def _evaluate(state: AnalysisState, call: Invocation) -> Value:
    on_training = call.arguments & SIDES == Tag.TRAIN
    state.report(Milestone.TRAINING_LOSS if on_training else Milestone.TESTING_LOSS)
    return Value(Tag.METRIC)


def _run_batch(state: AnalysisState, call: Invocation) -> Value | None:
    if call.method == "test_on_batch":
        return _evaluate(state, call)
    state.trains()
    state.report(Milestone.TRAINING_LOSS)
    return Value(Tag.LOSS)


def _best_score(state: AnalysisState, call: Invocation) -> Value | None:
    _evaluate(state, call)
    return Value(Tag.HISTORY)


# Names of methods, the tags of which the receiver needs one, and what the method does.
_ANY: Tags = 0
_METHODS: tuple[tuple[frozenset[str], Tags, Rule], ...] = (
    (names.METHODS["fit"], _ANY, _fit),
    (names.METHODS["predict"], _ANY, _predict),
    (names.METHODS["score"], ESTIMATOR, _score),
    (names.METHODS["read"], Tag.FILE, lambda state, call: state.report_load(call.receiver.tags)),
    (
        names.METHODS["path_read"],
        Tag.FILE_PATH,
        lambda state, call: state.report_load(call.receiver.tags),
    ),
    (frozenset({"open"}), Tag.ARCHIVE | Tag.FILE_PATH, _open_member),
    (frozenset({"split"}), Tag.SPLITTER, lambda _trace, _call: _FOLDS),
    (names.METHODS["reduce"], Tag.RESIDUAL, lambda _, call: reduced(call.receiver.tags)),
    (names.METHODS["self"], ESTIMATOR, lambda _, call: call.receiver),
    (frozenset({"items"}), _ANY, _take_items),
    (frozenset({"values"}), _ANY, lambda _, call: call.receiver if call.receiver.each else None),
    (frozenset({"get", "pop"}), _ANY, _take_one),
    (frozenset({"backward"}), Tag.LOSS, _backward),
    (names.METHODS["batch"], Tag.NETWORK, _run_batch),
    (names.METHODS["record"], ESTIMATOR, lambda _trace, _call: Value(Tag.HISTORY)),
    (frozenset({"get_best_score"}), ESTIMATOR, _best_score),
    (frozenset({"dot", "matmul"}), _ANY, lambda t, call: multiply(t, call.receiver, call.first)),
    (
        frozenset({"transform", "fit_transform"}),
        Tag.TRANSFORMER,
        lambda _, call: Value(call.arguments & PROPAGATED),
    ),
)
