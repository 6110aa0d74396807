"""What the static analyzer knows about the value of an expression.

A value is a set of tags and, where it matters, the parts it is made of. Its side is the part of
the data it stems from: training, held-out or test data. Depth and width are bounded, so no
program can make the analyzer's own work grow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reward_server.instrument.static.scopes import Class, Function

Tags = int
_MAX_DEPTH = 3
_MAX_WIDTH = 16


class Tag(IntEnum):
    """One fact about a value; a set of tags is an integer with one bit for each, which is fast."""

    DATA = 1 << 0
    TRAIN = 1 << 1
    HELDOUT = 1 << 2
    TEST = 1 << 3
    PREDICTION = 1 << 4
    UNKNOWN = 1 << 5
    RESIDUAL = 1 << 6
    REDUCED = 1 << 7
    LOSS = 1 << 8
    METRIC = 1 << 9
    MODEL = 1 << 10
    NETWORK = 1 << 11
    TRANSFORMER = 1 << 12
    SPLITTER = 1 << 13
    TRAINER = 1 << 14
    LOSS_FUNCTION = 1 << 15
    HISTORY = 1 << 16
    FILE = 1 << 17
    ARCHIVE = 1 << 18
    FILE_PATH = 1 << 19
    NOT_TASK_DATA = 1 << 20
    STUDY = 1 << 21
    WEIGHTS = 1 << 22
    LINEAR = 1 << 23


NO_TAGS: Tags = 0
SIDES: Tags = Tag.TRAIN | Tag.HELDOUT | Tag.TEST
ONE_SIDE: tuple[Tags, ...] = (Tag.TRAIN, Tag.HELDOUT, Tag.TEST)
ORIGINS: Tags = SIDES | Tag.NOT_TASK_DATA
PROPAGATED: Tags = (
    ORIGINS | Tag.DATA | Tag.PREDICTION | Tag.UNKNOWN | Tag.RESIDUAL | Tag.REDUCED
    | Tag.LOSS | Tag.METRIC | Tag.LINEAR
)  # fmt: skip
SIDE_HINTABLE: Tags = Tag.DATA | Tag.PREDICTION | Tag.UNKNOWN
ESTIMATOR: Tags = Tag.MODEL | Tag.NETWORK


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of one value: its tags, its qualified name, its parts, its definition."""

    tags: Tags = NO_TAGS
    path: str = ""
    items: tuple[Value, ...] = ()
    each: Value | None = None
    callee: Function | Class | None = None
    instance: Class | None = None
    depth: int = 0

    def has(self, tags: Tags) -> bool:
        """Tell whether any of these tags is known of this value."""
        return bool(self.tags & tags)

    def tagged(self, tags: Tags) -> Value:
        """Return this value with more tags."""
        return self if not tags & ~self.tags else replace(self, tags=self.tags | tags)

    def element(self) -> Value:
        """Return what iterating over this value, or taking one item of it, yields."""
        return self.each or Value(self.tags)

    def leaves(self) -> Iterator[Value]:
        """Yield the parts that have no parts of their own."""
        if not self.items:
            yield self
        for item in self.items:
            yield from item.leaves()

    def part(self, index: int, count: int) -> Value:
        """Return the part that lands in one of `count` unpacked targets."""
        return self.items[index] if len(self.items) == count else self.element()


NOTHING = Value()
UNKNOWN = Value(Tag.UNKNOWN)


def sequence(parts: list[Value]) -> Value:
    """Return the value of a literal tuple, list or set, or of the values of a dict."""
    tags = union(parts)
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > _MAX_DEPTH:
        return Value(tags)
    items = tuple(parts) if len(parts) <= _MAX_WIDTH else ()
    return Value(tags, items=items, each=join_all(parts), depth=depth)


def iterable(each: Value) -> Value:
    """Return a value whose iteration yields `each`."""
    if each.depth >= _MAX_DEPTH:
        return Value(each.tags)
    return Value(each.tags, each=each, depth=each.depth + 1)


def union(values: Iterable[Value]) -> Tags:
    """Return every tag that any of the values has."""
    tags = NO_TAGS
    for value in values:
        tags |= value.tags
    return tags


def join(left: Value, right: Value) -> Value:
    """Return what is known of something that is one of two values."""
    if left is right or right is NOTHING or left == right:
        return left
    if left is NOTHING:
        return right
    items: tuple[Value, ...] = ()
    if len(left.items) == len(right.items):
        items = tuple(map(join, left.items, right.items))
    return Value(
        left.tags | right.tags,
        left.path or right.path,
        items,
        join(left.each or NOTHING, right.each or NOTHING) if left.each or right.each else None,
        left.callee or right.callee,
        left.instance or right.instance,
        max(left.depth, right.depth),
    )


def join_all(values: Iterable[Value]) -> Value:
    """Return what is known of something that is one of many values."""
    return reduce(join, values, NOTHING)


def reduced(tags: Tags) -> Value:
    """Return the value of a mean, a sum or a root of something."""
    return Value(tags & PROPAGATED | Tag.REDUCED)
