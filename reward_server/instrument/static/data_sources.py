"""How data and saved models come out of files, and how data is split."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from reward_server.instrument.static.library_names import METHODS
from reward_server.instrument.static.values import (
    NO_TAGS,
    NOTHING,
    ORIGINS,
    PROPAGATED,
    SIDES,
    Tag,
    Value,
    sequence,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.instrument.static.scopes import Invocation
    from reward_server.instrument.static.state import AnalysisState

    Rule = Callable[[AnalysisState, Invocation], Value]


def load(state: AnalysisState, call: Invocation) -> Value:
    """Report that data is read."""
    return state.report_load(call.arguments)


def read_lazily(_: AnalysisState, call: Invocation) -> Value:
    """Return a reader, which reads when the program iterates over it."""
    return Value(call.arguments & (ORIGINS | Tag.FILE | Tag.DATA))


def parse(state: AnalysisState, call: Invocation) -> Value:
    """Return what a text holds; the text was read before, unless this call reads it."""
    match call.node.args:
        case [ast.Call(func=ast.Attribute(attr=attr))] if attr in METHODS["read"]:
            return load(state, call) if call.arguments & Tag.UNKNOWN else call.first
    return Value(call.arguments & PROPAGATED)


def save(state: AnalysisState, call: Invocation) -> Value:
    """Remember what the program saves, and where."""
    for path in call.node.args[1:2]:
        state.saved[ast.dump(path)] = call.first
    return NOTHING


def load_saved(state: AnalysisState, call: Invocation) -> Value:
    """Return what the program itself saved there, or data if the file's name says so."""
    for path in call.node.args[:1]:
        if (found := state.saved.get(ast.dump(path))) is not None:
            return found
    return load(state, call) if call.arguments & SIDES else NOTHING


def opener(kind: Tag) -> Rule:
    """Return the rule for a function that opens a file or an archive; nothing if it may write."""

    def open_file(_: AnalysisState, call: Invocation) -> Value:
        reads = opens_for_reading(call.node, 1)
        return Value(call.arguments & ORIGINS | kind) if reads else NOTHING

    return open_file


def consume_iterable(state: AnalysisState, call: Invocation) -> Value:
    """Return all that an iterable holds; consuming a file reads it."""
    return load(state, call) if call.first.has(Tag.FILE) else call.first


def opens_for_reading(node: ast.Call, position: int) -> bool:
    """Tell whether a call that opens a file surely opens it to read."""
    given = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    mode = (node.args[position : position + 1] or given or [ast.Constant("r")])[0]
    if not (isinstance(mode, ast.Constant) and isinstance(mode.value, str)):
        return False
    return "r" in mode.value and "+" not in mode.value


def split(_: AnalysisState, call: Invocation) -> Value:
    """Return the parts of a random split of each argument, training data first."""
    sides = call.arguments & SIDES
    kept = Tag.HELDOUT if sides == Tag.HELDOUT else Tag.TRAIN
    pair = [Value(Tag.DATA | kept), Value(Tag.DATA | Tag.HELDOUT)]
    return sequence(pair * len(call.positional))


def split_at_random(_: AnalysisState, call: Invocation) -> Value:
    """Return the parts of one data set: training data, then what is held out."""
    count = max(2, *(len(value.items) for value in (*call.positional[1:2], NOTHING)))
    rest = [Value(Tag.DATA | Tag.HELDOUT)] * (count - 1)
    return sequence([Value(Tag.DATA | Tag.TRAIN), *rest])


def subset(_: AnalysisState, call: Invocation) -> Value:
    """Return the chosen rows of a data set."""
    rows = call.positional[1].tags & SIDES if len(call.positional) > 1 else NO_TAGS
    tags = call.first.tags & PROPAGATED | Tag.DATA
    return Value(tags & ~SIDES | rows if rows else tags)


def drops_training_rows(call: Invocation) -> bool:
    """Tell whether the rows of a training table are dropped, as in `df.drop(train.index)`."""
    match call.node.args:
        case [ast.Attribute(attr="index"), *_]:
            return call.receiver.tags & SIDES == call.first.tags & SIDES == Tag.TRAIN
    return False
