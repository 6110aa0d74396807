"""What a call does: the milestones it reaches and the value it gives."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from reward_server.instrument.static import vocabulary
from reward_server.instrument.static.invocation import (
    bind_parameters,
    is_own_metric,
    reduced,
)
from reward_server.instrument.static.library_roles import Role, role_of
from reward_server.instrument.static.loading import (
    exhaust,
    load,
    open_archive,
    open_file,
    parse,
    put_away,
    read_lazily,
    take_back,
)
from reward_server.instrument.static.manual_weights import multiply
from reward_server.instrument.static.methods import apply_method
from reward_server.instrument.static.scopes import Class, Function, names_a_model, side_of
from reward_server.instrument.static.splits import (
    leaves_the_rest,
    shuffled_rows,
    split,
    split_at_random,
    subset,
)
from reward_server.instrument.static.training_history import record, show_history, watch
from reward_server.instrument.static.values import (
    ESTIMATOR,
    FLOWING,
    NO_TAGS,
    NOTHING,
    ONE_SIDE,
    PLACES,
    SIDES,
    Tag,
    Tags,
    Value,
    iterable,
    join_all,
    sequence,
    union,
)
from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.static.invocation import Invocation
    from reward_server.instrument.static.trace import Trace

_JUDGED = Tag.PREDICTION | Tag.RESIDUAL | Tag.METRIC | Tag.LOSS


def apply(trace: Trace, call: Invocation) -> Value:
    """Report the milestones of a call and return its value."""
    known = call.receiver.tags or call.receiver.each is not None
    if call.method and known and not call.receiver.path:
        found = apply_method(trace, call)
        if found is not None:
            return found
    callee = call.function.callee
    if isinstance(callee, Function):
        return _apply_function(trace, callee, call)
    if isinstance(callee, Class):
        return _construct(trace, callee, call)
    path = call.function.path
    role = role_of(path) if path and path not in trace.replaced else None
    return _ROLES[role](trace, call) if role is not None else _apply_value(trace, call)


def _apply_value(trace: Trace, call: Invocation) -> Value:
    if call.function.has(Tag.LOSS_FUNCTION):
        return _loss(trace, call)
    if call.function.has(Tag.NETWORK):
        return _run_network(trace, call)
    show_history(trace, call)
    if call.method in vocabulary.STEP_METHODS and call.arguments & Tag.LOSS:
        trace.trains()
    if call.function.path == "builtins.print" or call.method in vocabulary.SHOW_METHODS:
        _show(trace, call)
    if call.method == "permutation":
        return shuffled_rows(trace, call)
    if call.method in vocabulary.CALLBACK_METHODS:
        _call_back(trace, call)
    return _passed_on(call)


def _passed_on(call: Invocation) -> Value:
    """Return what is known of the value of a call that is no step, from what goes into it."""
    arguments = call.arguments
    joins = call.method in vocabulary.JOIN_METHODS or side_of(call.method) & arguments
    if call.receiver.has(SIDES) and not joins:
        arguments &= ~SIDES
    if call.method == "drop" and leaves_the_rest(call):
        return Value(call.receiver.tags & ~SIDES | Tag.HELDOUT)
    if call.method == "replace" and call.receiver.tags in ONE_SIDE:
        return Value(_renamed(call))
    if (
        call.method in vocabulary.STATISTICS
        and call.receiver.tags & (_JUDGED | Tag.DATA) == Tag.DATA
    ):
        return Value(call.receiver.tags & FLOWING & ~SIDES)
    return Value((arguments | call.receiver.tags) & FLOWING)


def _table(trace: Trace, call: Invocation) -> Value:
    return Value(Tag.HISTORY) if show_history(trace, call) else _passed_on(call)


def _renamed(call: Invocation) -> Tags:
    """Return the side of a file whose name is made from another's."""
    new = call.node.args[1] if len(call.node.args) > 1 else None
    text = new.value if isinstance(new, ast.Constant) else None
    return (side_of(text) if isinstance(text, str) else NO_TAGS) or call.receiver.tags


def _show(trace: Trace, call: Invocation) -> None:
    for value in (*call.positional, *call.keywords.values()):
        if value.has(Tag.REDUCED):
            trace.judge(Tag.METRIC, value.tags & FLOWING)


def _call_back(trace: Trace, call: Invocation) -> None:
    """Let a package call the program's own function, as a study or a table does."""
    function = call.first.callee
    if call.first.instance is not None:
        function = call.first.instance.methods.get("__call__")
    if not isinstance(function, Function):
        return
    _enter(trace, function, call.receiver.tags & FLOWING)
    if call.receiver.has(Tag.STUDY):
        gives = function.returned.has(Tag.METRIC) or Tag.METRIC in function.deferred
        trace.studied = trace.studied or gives


def _apply_function(trace: Trace, function: Function, call: Invocation) -> Value:
    bind_parameters(function, call)
    tags = call.arguments & FLOWING
    _enter(trace, function, tags)
    if is_own_metric(function, call):
        trace.judge(Tag.METRIC, *call.data)
        return Value(tags & ~Tag.PREDICTION | Tag.METRIC)
    return _narrowed(function.returned, tags)


def _enter(trace: Trace, function: Function, tags: Tags) -> None:
    function.called = True
    for milestone in function.returned_milestones:
        trace.report(milestone)
    if function.trains:
        trace.trains()
    for kind, inner in function.deferred.items():
        if kind is Tag.PREDICTION or not inner & Tag.HELDOUT or tags & SIDES != Tag.TEST:
            trace.judge(kind, _given(tags, inner) | Tag.PREDICTION)


def _given(tags: Tags, inner: Tags) -> Tags:
    """Return the data something inside a function was computed on, seen from its call."""
    if inner & SIDES in ONE_SIDE and inner & tags & SIDES:
        return tags & ~SIDES | inner & SIDES
    return tags if tags & SIDES else tags | inner


def _narrowed(value: Value, tags: Tags) -> Value:
    if value.items:
        items = tuple(_narrowed(item, tags) for item in value.items)
        return replace(value, tags=union(items), items=items, each=join_all(items))
    sides, given = value.tags & SIDES, tags & SIDES
    if given and given != sides and not given & ~sides:
        return Value(value.tags & ~SIDES | given)
    return value


def _construct(trace: Trace, made: Class, call: Invocation) -> Value:
    if "__init__" in made.methods:
        bind_parameters(made.methods["__init__"], call)
    if made.tags & ESTIMATOR:
        _define(trace)
    tags = made.tags or call.arguments & FLOWING
    return Value(tags | Tag.DATA if made.is_dataset else tags, instance=made)


def _define(trace: Trace) -> None:
    owner = trace.frame.function.owner if trace.frame.function else None
    if owner is None or not owner.tags & Tag.NETWORK:
        trace.report(Milestone.DEFINED_MODEL)
        trace.built()


def _model(trace: Trace, _: Invocation) -> Value:
    _define(trace)
    return Value(Tag.MODEL)


def _learner(trace: Trace, call: Invocation) -> Value:
    """Return a model that also trains and measures itself on the data it was made with."""
    return _model(trace, call).tagged(Tag.TRAINER)


def _meta_model(trace: Trace, call: Invocation) -> Value:
    if call.arguments & (ESTIMATOR | Tag.UNKNOWN):
        return _model(trace, call)
    return NOTHING


def _pipeline(trace: Trace, call: Invocation) -> Value:
    if call.arguments & ESTIMATOR:
        return _model(trace, call)
    return Value(Tag.TRANSFORMER)


def _network(trace: Trace, _: Invocation) -> Value:
    _define(trace)
    return Value(ESTIMATOR)


def _saved_network(trace: Trace, call: Invocation) -> Value:
    """Return a network from a file: its own again, in a program that trains one."""
    trains = Milestone.TRAINED_MODEL in trace.seen
    return Value(ESTIMATOR) if trains else _network(trace, call)


def _layer(trace: Trace, call: Invocation) -> Value:
    """Return a layer, which is a model when it is given the name of one."""
    statement = trace.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(target, ast.Name) and names_a_model(target.id):
        return _network(trace, call)
    return NOTHING


def _cross_score(trace: Trace, call: Invocation) -> Value:
    if not call.arguments & (ESTIMATOR | Tag.UNKNOWN):
        return NOTHING
    trace.report(Milestone.TRAINED_MODEL)
    trace.report(Milestone.TESTING_LOSS)
    return Value(Tag.DATA | Tag.HELDOUT | Tag.METRIC)


def _cross_predict(trace: Trace, call: Invocation) -> Value:
    if not call.arguments & (ESTIMATOR | Tag.UNKNOWN):
        return NOTHING
    trace.report(Milestone.TRAINED_MODEL)
    return Value(Tag.DATA | Tag.HELDOUT | Tag.PREDICTION)


def _cross_train(trace: Trace, call: Invocation) -> Value:
    """Train on folds and give the losses of each by name."""
    if call.function.path.startswith("sklearn."):
        return Value(_cross_score(trace, call).tags | Tag.HISTORY)
    _define(trace)
    trace.report(Milestone.TRAINED_MODEL)
    return Value(Tag.HISTORY | Tag.HELDOUT)


def _train(trace: Trace, call: Invocation) -> Value:
    _define(trace)
    trace.report(Milestone.TRAINED_MODEL)
    watch(trace, call)
    return Value(Tag.MODEL)


def _solve(trace: Trace, call: Invocation) -> Value:
    if not call.arguments & Tag.DATA:
        return NOTHING
    _define(trace)
    trace.report(Milestone.TRAINED_MODEL)
    return Value(Tag.WEIGHTS)


def _product(trace: Trace, call: Invocation) -> Value:
    rest = call.positional[1:2]
    return multiply(trace, call.first, rest[0] if rest else NOTHING)


def _metric(trace: Trace, call: Invocation) -> Value:
    tags = call.arguments & FLOWING
    if not tags & (Tag.PREDICTION | Tag.UNKNOWN):
        return Value(tags)
    trace.judge(Tag.METRIC, *call.data)
    return Value(tags & ~Tag.PREDICTION | Tag.METRIC)


def _loss(trace: Trace, call: Invocation) -> Value:
    tags = call.arguments & FLOWING
    if not tags & (Tag.PREDICTION | Tag.UNKNOWN):
        return NOTHING
    if trace.frame.function is not None and not (Tag.TRAIN | Tag.HELDOUT) & ~tags:
        trace.judge(Tag.LOSS, *call.data)
        return Value(tags & ~Tag.PREDICTION | Tag.LOSS)
    if tags & Tag.TRAIN and not (tags & Tag.HELDOUT and trace.frame.no_grad):
        held_out = False  # of both in turn, training data comes first
    else:
        held_out = bool(tags & (Tag.HELDOUT | Tag.TEST)) or trace.frame.no_grad
    trace.report(Milestone.TESTING_LOSS if held_out else Milestone.TRAINING_LOSS)
    return Value(tags & ~Tag.PREDICTION | Tag.LOSS)


def _run_network(trace: Trace, call: Invocation) -> Value:
    network = call.function.instance
    if network is not None and "forward" in network.methods:
        bind_parameters(network.methods["forward"], call)
    tags = call.arguments & FLOWING
    if trace.frame.no_grad or tags & Tag.TEST:
        trace.judge(Tag.PREDICTION, tags)
    return Value(tags | Tag.PREDICTION)


def _copy(_: Trace, call: Invocation) -> Value:
    return call.first


def _reduce(_: Trace, call: Invocation) -> Value:
    tags = call.arguments & FLOWING
    if tags & Tag.RESIDUAL:
        return reduced(tags)
    return Value(tags if tags & _JUDGED else tags & ~SIDES)


def _enumerate(_: Trace, call: Invocation) -> Value:
    return iterable(sequence([NOTHING, call.first.element()]))


def _zip(_: Trace, call: Invocation) -> Value:
    return iterable(sequence([value.element() for value in call.positional]))


def _tagging(tags: Tags) -> Callable[[Trace, Invocation], Value]:
    return lambda _, call: Value(tags | (call.arguments & PLACES))


_ROLES: dict[Role, Callable[[Trace, Invocation], Value]] = {
    Role.LOAD: load,
    Role.PARSE: parse,
    Role.READER: read_lazily,
    Role.EXHAUST: exhaust,
    Role.OPEN: open_file,
    Role.ARCHIVE: open_archive,
    Role.FILE_PATH: _tagging(Tag.FILE_PATH),
    Role.MODEL: _model,
    Role.META_MODEL: _meta_model,
    Role.PIPELINE: _pipeline,
    Role.NETWORK: _network,
    Role.SAVED_NETWORK: _saved_network,
    Role.LAYER: _layer,
    Role.TRANSFORMER: lambda _trace, _call: Value(Tag.TRANSFORMER),
    Role.SPLITTER: lambda _trace, _call: Value(Tag.SPLITTER),
    Role.SPLIT: split,
    Role.CROSS_SCORE: _cross_score,
    Role.CROSS_PREDICT: _cross_predict,
    Role.CROSS_TRAIN: _cross_train,
    Role.DATASET: lambda _trace, call: Value(call.arguments & FLOWING | Tag.DATA),
    Role.RANDOM_SPLIT: split_at_random,
    Role.SUBSET: subset,
    Role.SHUFFLED_ROWS: shuffled_rows,
    Role.PUT_AWAY: put_away,
    Role.TAKE_BACK: take_back,
    Role.STUDY: lambda _trace, _call: Value(Tag.STUDY),
    Role.RECORD: record,
    Role.SOLVE: _solve,
    Role.PRODUCT: _product,
    Role.TRAIN: _train,
    Role.TRAINER: lambda _trace, _call: Value(Tag.TRAINER),
    Role.LEARNER: _learner,
    Role.TABLE: _table,
    Role.METRIC: _metric,
    Role.LOSS_FUNCTION: lambda _trace, _call: Value(Tag.LOSS_FUNCTION),
    Role.LOSS: _loss,
    Role.OPTIMIZER: lambda _trace, _call: Value(Tag.OPTIMIZER),
    Role.NO_GRAD: lambda _trace, _call: NOTHING,
    Role.COPY: _copy,
    Role.REDUCE: _reduce,
    Role.LENGTH: lambda _trace, _call: Value(NO_TAGS),
    Role.ENUMERATE: _enumerate,
    Role.NEXT: lambda _trace, call: call.first.element(),
    Role.ZIP: _zip,
    Role.SAME: _copy,
}
