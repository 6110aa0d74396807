"""What a call does: the milestones it reaches and the value it returns."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from reward_server.instrument.static import data_sources
from reward_server.instrument.static import library_names as names
from reward_server.instrument.static.library_names import Role, role_of
from reward_server.instrument.static.methods import apply_method
from reward_server.instrument.static.scopes import (
    Class,
    Function,
    bind_parameters,
    is_program_metric,
    names_a_model,
    side_of,
)
from reward_server.instrument.static.training import (
    multiply,
    note_evaluation_sets,
    record,
    show_history,
)
from reward_server.instrument.static.values import (
    ESTIMATOR,
    NO_TAGS,
    NOTHING,
    ONE_SIDE,
    ORIGINS,
    PROPAGATED,
    SIDES,
    Tag,
    Tags,
    Value,
    iterable,
    join_all,
    reduced,
    sequence,
    union,
)
from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.static.scopes import Invocation
    from reward_server.instrument.static.state import AnalysisState

    Rule = Callable[[AnalysisState, Invocation], Value]

_RESULTS = Tag.PREDICTION | Tag.RESIDUAL | Tag.METRIC | Tag.LOSS


def apply(state: AnalysisState, call: Invocation) -> Value:
    """Report the milestones of a call and return its value."""
    known = call.receiver.tags or call.receiver.each is not None
    if call.method and known and not call.receiver.path:
        found = apply_method(state, call)
        if found is not None:
            return found
    callee = call.function.callee
    if isinstance(callee, Function):
        return _apply_function(state, callee, call)
    if isinstance(callee, Class):
        return _construct(state, callee, call)
    path = call.function.path
    role = role_of(path) if path and path not in state.replaced else None
    return _ROLES[role](state, call) if role is not None else _apply_value(state, call)


def _apply_value(state: AnalysisState, call: Invocation) -> Value:
    if call.function.has(Tag.LOSS_FUNCTION):
        return _loss(state, call)
    if call.function.has(Tag.NETWORK):
        return _run_network(state, call)
    show_history(state, call)
    if call.method in names.METHODS["step"] and call.arguments & Tag.LOSS:
        state.trains()
    if call.function.path == "builtins.print" or call.method in names.METHODS["show"]:
        _report_shown(state, call)
    if call.method == "permutation":
        return Value(Tag.DATA | Tag.TRAIN)
    if call.method in names.METHODS["callback"]:
        _apply_callback(state, call)
    return _propagate(call)


def _propagate(call: Invocation) -> Value:
    """Return the value of a call that is no step, derived from what goes into it."""
    arguments = call.arguments
    joins = call.method in names.METHODS["join"] or side_of(call.method) & arguments
    if call.receiver.has(SIDES) and not joins:
        arguments &= ~SIDES
    if call.method == "drop" and data_sources.drops_training_rows(call):
        return Value(call.receiver.tags & ~SIDES | Tag.HELDOUT)
    if call.method == "replace" and call.receiver.tags in ONE_SIDE:
        return Value(_renamed_path(call))
    plain_data = call.receiver.tags & (_RESULTS | Tag.DATA) == Tag.DATA
    if call.method in names.METHODS["statistics"] and plain_data:
        return Value(call.receiver.tags & PROPAGATED & ~SIDES)
    return Value((arguments | call.receiver.tags) & PROPAGATED)


def _table(state: AnalysisState, call: Invocation) -> Value:
    return Value(Tag.HISTORY) if show_history(state, call) else _propagate(call)


def _renamed_path(call: Invocation) -> Tags:
    """Return the side of a file whose name is made from another's."""
    new = call.node.args[1] if len(call.node.args) > 1 else None
    text = new.value if isinstance(new, ast.Constant) else None
    return (side_of(text) if isinstance(text, str) else NO_TAGS) or call.receiver.tags


def _report_shown(state: AnalysisState, call: Invocation) -> None:
    for value in (*call.positional, *call.keywords.values()):
        if value.has(Tag.REDUCED):
            state.record_result(Tag.METRIC, value.tags & PROPAGATED)


def _apply_callback(state: AnalysisState, call: Invocation) -> None:
    """Analyze a function of the program that a package calls, as a study or a table does."""
    function = call.first.callee
    if call.first.instance is not None:
        function = call.first.instance.methods.get("__call__")
    if not isinstance(function, Function):
        return
    _apply_body(state, function, call.receiver.tags & PROPAGATED)
    if call.receiver.has(Tag.STUDY):
        gives = function.returned.has(Tag.METRIC) or Tag.METRIC in function.deferred
        state.study_is_scored = state.study_is_scored or gives


def _apply_function(state: AnalysisState, function: Function, call: Invocation) -> Value:
    bind_parameters(function, call)
    tags = call.arguments & PROPAGATED
    _apply_body(state, function, tags)
    if is_program_metric(function, call):
        state.record_result(Tag.METRIC, *call.data)
        return Value(tags & ~Tag.PREDICTION | Tag.METRIC)
    return _narrow_sides(function.returned, tags)


def _apply_body(state: AnalysisState, function: Function, tags: Tags) -> None:
    function.called = True
    for milestone in function.returned_milestones:
        state.report(milestone)
    if function.trains:
        state.trains()
    for kind, inner in function.deferred.items():
        if kind is Tag.PREDICTION or not inner & Tag.HELDOUT or tags & SIDES != Tag.TEST:
            state.record_result(kind, _data_at_call(tags, inner) | Tag.PREDICTION)


def _data_at_call(tags: Tags, inner: Tags) -> Tags:
    """Return the data that a result inside a function was computed on, as its caller sees it."""
    if inner & SIDES in ONE_SIDE and inner & tags & SIDES:
        return tags & ~SIDES | inner & SIDES
    return tags if tags & SIDES else tags | inner


def _narrow_sides(value: Value, tags: Tags) -> Value:
    if value.items:
        items = tuple(_narrow_sides(item, tags) for item in value.items)
        return replace(value, tags=union(items), items=items, each=join_all(items))
    sides, given = value.tags & SIDES, tags & SIDES
    if given and given != sides and not given & ~sides:
        return Value(value.tags & ~SIDES | given)
    return value


def _construct(state: AnalysisState, made: Class, call: Invocation) -> Value:
    if "__init__" in made.methods:
        bind_parameters(made.methods["__init__"], call)
    if made.tags & ESTIMATOR:
        _report_model(state)
    tags = made.tags or call.arguments & PROPAGATED
    return Value(tags | Tag.DATA if made.is_dataset else tags, instance=made)


def _report_model(state: AnalysisState) -> None:
    owner = state.frame.function.owner if state.frame.function else None
    if owner is None or not owner.tags & Tag.NETWORK:
        state.report(Milestone.DEFINED_MODEL)
        state.note_construction()


def _model(state: AnalysisState, _: Invocation) -> Value:
    _report_model(state)
    return Value(Tag.MODEL)


def _learner(state: AnalysisState, call: Invocation) -> Value:
    """Return a model that also trains and evaluates on the data it was created with."""
    return _model(state, call).tagged(Tag.TRAINER)


def _meta_model(state: AnalysisState, call: Invocation) -> Value:
    if call.arguments & (ESTIMATOR | Tag.UNKNOWN):
        return _model(state, call)
    return NOTHING


def _pipeline(state: AnalysisState, call: Invocation) -> Value:
    if call.arguments & ESTIMATOR:
        return _model(state, call)
    return Value(Tag.TRANSFORMER)


def _network(state: AnalysisState, _: Invocation) -> Value:
    _report_model(state)
    return Value(ESTIMATOR)


def _saved_network(state: AnalysisState, call: Invocation) -> Value:
    """Return a network read from a file; in a program that trains one, it is that one."""
    trains = Milestone.TRAINED_MODEL in state.previous_milestones
    return Value(ESTIMATOR) if trains else _network(state, call)


def _layer(state: AnalysisState, call: Invocation) -> Value:
    """Return a layer; it is a model if the program names it like one."""
    statement = state.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(target, ast.Name) and names_a_model(target.id):
        return _network(state, call)
    return NOTHING


def _cross_validate(state: AnalysisState, call: Invocation) -> bool:
    """Report that a package trains a model on each fold, if it is given a model."""
    given = bool(call.arguments & (ESTIMATOR | Tag.UNKNOWN))
    if given:
        state.report(Milestone.TRAINED_MODEL)
    return given


def _cross_score(state: AnalysisState, call: Invocation) -> Value:
    if not _cross_validate(state, call):
        return NOTHING
    state.report(Milestone.TESTING_LOSS)
    return Value(Tag.DATA | Tag.HELDOUT | Tag.METRIC)


def _cross_predict(state: AnalysisState, call: Invocation) -> Value:
    found = _cross_validate(state, call)
    return Value(Tag.DATA | Tag.HELDOUT | Tag.PREDICTION) if found else NOTHING


def _cross_train(state: AnalysisState, call: Invocation) -> Value:
    """Train on folds and return the losses of each by name."""
    if call.function.path.startswith("sklearn."):
        return Value(_cross_score(state, call).tags | Tag.HISTORY)
    _report_model(state)
    state.report(Milestone.TRAINED_MODEL)
    return Value(Tag.HISTORY | Tag.HELDOUT)


def _train(state: AnalysisState, call: Invocation) -> Value:
    _report_model(state)
    state.report(Milestone.TRAINED_MODEL)
    note_evaluation_sets(state, call)
    return Value(Tag.MODEL)


def _solve(state: AnalysisState, call: Invocation) -> Value:
    if not call.arguments & Tag.DATA:
        return NOTHING
    _report_model(state)
    state.report(Milestone.TRAINED_MODEL)
    return Value(Tag.WEIGHTS)


def _product(state: AnalysisState, call: Invocation) -> Value:
    rest = call.positional[1:2]
    return multiply(state, call.first, rest[0] if rest else NOTHING)


def _metric(state: AnalysisState, call: Invocation) -> Value:
    tags = call.arguments & PROPAGATED
    if not tags & (Tag.PREDICTION | Tag.UNKNOWN):
        return Value(tags)
    state.record_result(Tag.METRIC, *call.data)
    return Value(tags & ~Tag.PREDICTION | Tag.METRIC)


def _loss(state: AnalysisState, call: Invocation) -> Value:
    tags = call.arguments & PROPAGATED
    if not tags & (Tag.PREDICTION | Tag.UNKNOWN):
        return NOTHING
    if state.frame.function is not None and not (Tag.TRAIN | Tag.HELDOUT) & ~tags:
        state.record_result(Tag.LOSS, *call.data)
        return Value(tags & ~Tag.PREDICTION | Tag.LOSS)
    if tags & Tag.TRAIN and not (tags & Tag.HELDOUT and state.frame.no_grad):
        held_out = False  # a function for both sides: training data comes first
    else:
        held_out = bool(tags & (Tag.HELDOUT | Tag.TEST)) or state.frame.no_grad
    state.report(Milestone.TESTING_LOSS if held_out else Milestone.TRAINING_LOSS)
    return Value(tags & ~Tag.PREDICTION | Tag.LOSS)


def _run_network(state: AnalysisState, call: Invocation) -> Value:
    network = call.function.instance
    if network is not None and "forward" in network.methods:
        bind_parameters(network.methods["forward"], call)
    tags = call.arguments & PROPAGATED
    if state.frame.no_grad or tags & Tag.TEST:
        state.record_result(Tag.PREDICTION, tags)
    return Value(tags | Tag.PREDICTION)


def _reduce(_: AnalysisState, call: Invocation) -> Value:
    tags = call.arguments & PROPAGATED
    if tags & Tag.RESIDUAL:
        return reduced(tags)
    return Value(tags if tags & _RESULTS else tags & ~SIDES)


def _tagging(tags: Tags) -> Rule:
    return lambda _, call: Value(tags | (call.arguments & ORIGINS))


def _constant(tags: Tags) -> Rule:
    value = Value(tags)
    return lambda _trace, _call: value


_ROLES: dict[Role, Rule] = {
    Role.LOAD: data_sources.load,
    Role.PARSE: data_sources.parse,
    Role.READER: data_sources.read_lazily,
    Role.CONSUME: data_sources.consume_iterable,
    Role.OPEN: data_sources.opener(Tag.FILE),
    Role.ARCHIVE: data_sources.opener(Tag.ARCHIVE),
    Role.FILE_PATH: _tagging(Tag.FILE_PATH),
    Role.MODEL: _model,
    Role.META_MODEL: _meta_model,
    Role.PIPELINE: _pipeline,
    Role.NETWORK: _network,
    Role.SAVED_NETWORK: _saved_network,
    Role.LAYER: _layer,
    Role.TRANSFORMER: _constant(Tag.TRANSFORMER),
    Role.SPLITTER: _constant(Tag.SPLITTER),
    Role.SPLIT: data_sources.split,
    Role.CROSS_SCORE: _cross_score,
    Role.CROSS_PREDICT: _cross_predict,
    Role.CROSS_TRAIN: _cross_train,
    Role.DATASET: lambda _trace, call: Value(call.arguments & PROPAGATED | Tag.DATA),
    Role.RANDOM_SPLIT: data_sources.split_at_random,
    Role.SUBSET: data_sources.subset,
    Role.SHUFFLED_ROWS: _constant(Tag.DATA | Tag.TRAIN),
    Role.SAVE: data_sources.save,
    Role.LOAD_SAVED: data_sources.load_saved,
    Role.STUDY: _constant(Tag.STUDY),
    Role.RECORD: record,
    Role.SOLVE: _solve,
    Role.PRODUCT: _product,
    Role.TRAIN: _train,
    Role.TRAINER: _constant(Tag.TRAINER),
    Role.LEARNER: _learner,
    Role.TABLE: _table,
    Role.METRIC: _metric,
    Role.LOSS_FUNCTION: _constant(Tag.LOSS_FUNCTION),
    Role.LOSS: _loss,
    Role.NO_GRAD: _constant(NO_TAGS),
    Role.COPY: lambda _trace, call: call.first,
    Role.REDUCE: _reduce,
    Role.LENGTH: _constant(NO_TAGS),
    Role.ENUMERATE: lambda _, call: iterable(sequence([NOTHING, call.first.element()])),
    Role.NEXT: lambda _trace, call: call.first.element(),
    Role.ZIP: lambda _, call: iterable(sequence([v.element() for v in call.positional])),
    Role.SAME: lambda _trace, call: call.first,
}
