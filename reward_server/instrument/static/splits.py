"""How data is parted into what is trained on and what is held out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from reward_server.instrument.static.values import (
    FLOWING,
    NO_TAGS,
    NOTHING,
    SIDES,
    Tag,
    Value,
    sequence,
)

if TYPE_CHECKING:
    from reward_server.instrument.static.invocation import Invocation
    from reward_server.instrument.static.trace import Trace


def split(_: Trace, call: Invocation) -> Value:
    """Return the parts that a random split of each argument gives, training data first."""
    sides = call.arguments & SIDES
    kept = Tag.HELDOUT if sides == Tag.HELDOUT else Tag.TRAIN
    pair = [Value(Tag.DATA | kept), Value(Tag.DATA | Tag.HELDOUT)]
    return sequence(pair * len(call.positional))


def split_at_random(_: Trace, call: Invocation) -> Value:
    """Return the parts of one data set: training data, then what is held out."""
    count = max(2, *(len(value.items) for value in (*call.positional[1:2], NOTHING)))
    rest = [Value(Tag.DATA | Tag.HELDOUT)] * (count - 1)
    return sequence([Value(Tag.DATA | Tag.TRAIN), *rest])


def subset(_: Trace, call: Invocation) -> Value:
    """Return the chosen rows of a data set."""
    rows = call.positional[1].tags & SIDES if len(call.positional) > 1 else NO_TAGS
    tags = call.first.tags & FLOWING | Tag.DATA
    return Value(tags & ~SIDES | rows if rows else tags)


def shuffled_rows(_trace: Trace, _call: Invocation) -> Value:
    """Return row numbers in random order: of them, what follows the first part is held out."""
    return Value(Tag.DATA | Tag.TRAIN)


def leaves_the_rest(call: Invocation) -> bool:
    """Tell whether the rows of a training table are dropped, as in `df.drop(train.index)`."""
    match call.node.args:
        case [ast.Attribute(attr="index"), *_]:
            return call.receiver.tags & SIDES == call.first.tags & SIDES == Tag.TRAIN
    return False
