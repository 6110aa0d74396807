"""What a method call does, judged by what is known of its receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.instrument.static import vocabulary
from reward_server.instrument.static.invocation import bind_parameters, opens_for_reading, reduced
from reward_server.instrument.static.manual_weights import multiply
from reward_server.instrument.static.scopes import Function
from reward_server.instrument.static.training_history import walk_history, watch
from reward_server.instrument.static.values import (
    ESTIMATOR,
    FLOWING,
    NOTHING,
    PLACES,
    SIDES,
    Tag,
    Value,
    iterable,
    sequence,
)
from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.static.invocation import Invocation
    from reward_server.instrument.static.trace import Trace

_KNOWN_DATA = Tag.DATA | Tag.UNKNOWN
_FOLDS = iterable(sequence([Value(Tag.DATA | Tag.TRAIN), Value(Tag.DATA | Tag.HELDOUT)]))


def apply_method(trace: Trace, call: Invocation) -> Value | None:
    """Report what a method does by its receiver; nothing if its name means nothing here."""
    receiver, method = call.receiver, call.method
    own = receiver.instance is not None and method in receiver.instance.methods
    if own and not (receiver.has(Tag.MODEL) and not receiver.has(Tag.NETWORK)):
        return None
    if receiver.has(Tag.TRAINER) and method in ("fit", "train"):
        trace.report(Milestone.TRAINED_MODEL)
        return receiver
    if receiver.has(Tag.TRAINER) and method in vocabulary.TRAINER_METHODS:
        return _evaluate(trace, call)
    for methods, rule in _METHODS:
        if method in methods:
            return rule(trace, call)
    return None


def _fit(trace: Trace, call: Invocation) -> Value | None:
    receiver = call.receiver
    if receiver.has(Tag.TRANSFORMER) and not receiver.has(Tag.MODEL):
        return receiver
    guess = receiver.has(Tag.UNKNOWN) and len(call.positional) > 0
    if receiver.has(ESTIMATOR) or (guess and Milestone.DEFINED_MODEL in trace.seen):
        trace.report(Milestone.TRAINED_MODEL)
        watch(trace, call)
        _pass_on(call)
        return receiver.tagged(Tag.MODEL | Tag.HISTORY)
    return None


def _pass_on(call: Invocation) -> None:
    if isinstance(call.function.callee, Function):
        bind_parameters(call.function.callee, call)


def _predict(trace: Trace, call: Invocation) -> Value | None:
    guess = call.receiver.has(Tag.UNKNOWN) and Milestone.DEFINED_MODEL in trace.seen
    if not (call.receiver.has(ESTIMATOR | Tag.TRAINER) or guess):
        return None
    _pass_on(call)
    tags = call.arguments & FLOWING
    if call.method == "forecast":
        tags |= Tag.DATA
    trace.judge(Tag.PREDICTION, tags)
    return Value(tags | Tag.PREDICTION)


def _score(trace: Trace, call: Invocation) -> Value | None:
    if not call.receiver.has(ESTIMATOR) or not call.arguments & _KNOWN_DATA:
        return None
    _pass_on(call)
    tags = call.arguments & FLOWING | Tag.PREDICTION
    trace.judge(Tag.METRIC, Tag.PREDICTION, *call.data)
    return Value(tags & ~Tag.PREDICTION | Tag.METRIC)


def _read(trace: Trace, call: Invocation) -> Value | None:
    if not call.receiver.has(Tag.FILE):
        return None
    return trace.loaded(call.receiver.tags)


def _read_path(trace: Trace, call: Invocation) -> Value | None:
    if not call.receiver.has(Tag.FILE_PATH):
        return None
    return trace.loaded(call.receiver.tags)


def _open_member(_: Trace, call: Invocation) -> Value | None:
    if not call.receiver.has(Tag.ARCHIVE | Tag.FILE_PATH):
        return None
    mode = 0 if call.receiver.has(Tag.FILE_PATH) else 1
    tags = (call.arguments | call.receiver.tags) & PLACES
    return Value(tags | Tag.FILE) if opens_for_reading(call.node, mode) else NOTHING


def _split_folds(_: Trace, call: Invocation) -> Value | None:
    return _FOLDS if call.receiver.has(Tag.SPLITTER) else None


def _reduce_method(_: Trace, call: Invocation) -> Value | None:
    return reduced(call.receiver.tags) if call.receiver.has(Tag.RESIDUAL) else None


def _return_self(_: Trace, call: Invocation) -> Value | None:
    return call.receiver if call.receiver.has(ESTIMATOR) else None


def _take_items(trace: Trace, call: Invocation) -> Value | None:
    walk_history(trace, call)
    return iterable(sequence([NOTHING, call.receiver.element()]))


def _take_values(_: Trace, call: Invocation) -> Value | None:
    return call.receiver if call.receiver.each is not None else None


def _take_one(_: Trace, call: Invocation) -> Value | None:
    if call.first.has(Tag.DATA):
        return Value(call.first.tags & FLOWING)
    return call.receiver.element() if call.receiver.each is not None else None


def _backward(trace: Trace, call: Invocation) -> Value | None:
    if call.receiver.has(Tag.LOSS):
        trace.trains()
    return None


def _evaluate(trace: Trace, call: Invocation) -> Value:
    on_training = call.arguments & SIDES == Tag.TRAIN
    trace.report(Milestone.TRAINING_LOSS if on_training else Milestone.TESTING_LOSS)
    return Value(Tag.METRIC)


def _run_batch(trace: Trace, call: Invocation) -> Value | None:
    if not call.receiver.has(Tag.NETWORK):
        return None
    if call.method == "test_on_batch":
        return _evaluate(trace, call)
    trace.trains()
    trace.report(Milestone.TRAINING_LOSS)
    return Value(Tag.LOSS)


def _recall(_: Trace, call: Invocation) -> Value | None:
    return Value(Tag.HISTORY) if call.receiver.has(ESTIMATOR) else None


def _best_score(trace: Trace, call: Invocation) -> Value | None:
    if not call.receiver.has(ESTIMATOR):
        return None
    _evaluate(trace, call)
    return Value(Tag.HISTORY)


def _multiply(trace: Trace, call: Invocation) -> Value | None:
    return multiply(trace, call.receiver, call.first)


def _transform(_: Trace, call: Invocation) -> Value | None:
    return Value(call.arguments & FLOWING) if call.receiver.has(Tag.TRANSFORMER) else None


_METHODS: tuple[tuple[frozenset[str], Callable[[Trace, Invocation], Value | None]], ...] = (
    (vocabulary.FIT_METHODS, _fit),
    (vocabulary.PREDICT_METHODS, _predict),
    (vocabulary.SCORE_METHODS, _score),
    (vocabulary.READ_METHODS, _read),
    (vocabulary.PATH_READ_METHODS, _read_path),
    (frozenset({"open"}), _open_member),
    (frozenset({"split"}), _split_folds),
    (vocabulary.REDUCE_METHODS, _reduce_method),
    (vocabulary.SELF_METHODS, _return_self),
    (frozenset({"items"}), _take_items),
    (frozenset({"values"}), _take_values),
    (frozenset({"get", "pop"}), _take_one),
    (frozenset({"backward"}), _backward),
    (vocabulary.BATCH_METHODS, _run_batch),
    (vocabulary.RECORD_METHODS, _recall),
    (frozenset({"get_best_score"}), _best_score),
    (frozenset({"dot", "matmul"}), _multiply),
    (frozenset({"transform", "fit_transform"}), _transform),
)
