"""How data, and models the program has stored itself, come out of files."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from reward_server.instrument.static import vocabulary
from reward_server.instrument.static.invocation import opens_for_reading
from reward_server.instrument.static.values import FLOWING, NOTHING, PLACES, SIDES, Tag, Value

if TYPE_CHECKING:
    from reward_server.instrument.static.invocation import Invocation
    from reward_server.instrument.static.trace import Trace


def load(trace: Trace, call: Invocation) -> Value:
    """Report that data is read."""
    return trace.loaded(call.arguments)


def read_lazily(_: Trace, call: Invocation) -> Value:
    """Return a reader, which reads when it is walked over."""
    return Value(call.arguments & (PLACES | Tag.FILE | Tag.DATA))


def parse(trace: Trace, call: Invocation) -> Value:
    """Return what a text holds; whoever got the text has read it, unless it is read right here."""
    match call.node.args:
        case [ast.Call(func=ast.Attribute(attr=attr))] if attr in vocabulary.READ_METHODS:
            return load(trace, call) if call.arguments & Tag.UNKNOWN else call.first
    return Value(call.arguments & FLOWING)


def put_away(trace: Trace, call: Invocation) -> Value:
    """Remember what the program stores, and where."""
    for place in call.node.args[1:2]:
        trace.stored[ast.dump(place)] = call.first
    return NOTHING


def take_back(trace: Trace, call: Invocation) -> Value:
    """Return what the program itself has put there, or data if the file's name says so."""
    for place in call.node.args[:1]:
        if (found := trace.stored.get(ast.dump(place))) is not None:
            return found
    return load(trace, call) if call.arguments & SIDES else NOTHING


def open_file(_: Trace, call: Invocation) -> Value:
    """Return a file that is read when something is taken out of it."""
    reads = opens_for_reading(call.node, 1)
    return Value(call.arguments & PLACES | Tag.FILE) if reads else NOTHING


def open_archive(_: Trace, call: Invocation) -> Value:
    """Return an archive whose members can be opened."""
    reads = opens_for_reading(call.node, 1)
    return Value(call.arguments & PLACES | Tag.ARCHIVE) if reads else NOTHING


def exhaust(trace: Trace, call: Invocation) -> Value:
    """Return all that an iterable holds; of a file, this reads it."""
    return load(trace, call) if call.first.has(Tag.FILE) else call.first
