"""What has been recognised so far, and where the walk over the program stands.

Loads, models and training are reported at once. A metric or a prediction is judged by the
data it was computed on; inside a function that returns it this is known best where the
function is called, so it is deferred to the call site.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from reward_server.instrument.static.scopes import Class, Function, Scope
from reward_server.instrument.static.values import NO_TAGS, ONE_SIDE, SIDES, Tag, Tags, Value
from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reward_server.instrument.static.scopes import FunctionNode

    Place = tuple[int, int]

_BOTH = Tag.TRAIN | Tag.HELDOUT
_JUDGEABLE = Tag.PREDICTION | Tag.UNKNOWN


@dataclass(eq=False, slots=True)
class Loop:
    """A loop around the current statement: does it build what it trains, does it train?"""

    builds: bool = False
    trains: bool = False
    walks_sides: bool = False
    measures: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """A metric or a prediction in a function; open if its callers decide on which data."""

    kind: Tag
    place: Place | None
    tags: Tags
    is_open: bool
    is_mixed: bool


@dataclass(eq=False, slots=True)
class Frame:
    """The body being walked: its names, its function, its loops, what it has yet to judge."""

    scope: Scope
    function: Function | None = None
    loops: list[Loop] = field(default_factory=list)
    pending: list[Judgement] = field(default_factory=list)
    no_grad: bool = False


class Trace:
    """The state of one walk over the program."""

    def __init__(self) -> None:
        self.events: set[tuple[Place, Milestone]] = set()
        self.guesses: set[Place] = set()
        self.seen: frozenset[Milestone] = frozenset()
        self.replaced: set[str] = set()
        self.module = Scope()
        self.frame = Frame(self.module)
        self.statement: ast.stmt | None = None
        self.muted = False
        self.trained = False
        self.queue: list[Function] = []
        self.watched: tuple[Tags, ...] = ()
        self.studied = False
        self.stored: dict[str, Value] = {}
        self.arrays: set[tuple[object, str]] = set()
        self.updated: set[tuple[object, str]] = set()
        self.weights: set[tuple[object, str]] = set()
        self._functions: dict[FunctionNode, Function] = {}
        self._classes: dict[ast.ClassDef, Class] = {}
        self._sink: set[Milestone] | None = None

    @property
    def learnt(self) -> tuple[object, ...]:
        """Return what has to stay the same for another round to be of no use."""
        flowed = [function.flowed for function in self._functions.values()]
        return self.events, self.guesses, len(self.updated), len(self.weights), flowed

    def start_round(self) -> None:
        """Forget what was reported, keep what was learnt."""
        self.seen = frozenset(milestone for _, milestone in self.events)
        self.events, self.guesses, self.trained = set(), set(), False
        self.frame = Frame(self.module)
        self.module.names.clear()

    def function_of(self, node: FunctionNode, owner: Class | None = None) -> Function:
        """Return the record of a function and have its body walked in this round."""
        if node not in self._functions:
            parent = self.frame.scope
            scope = Scope(parent, forgotten=parent.forgotten)
            self._functions[node] = Function(node, scope, owner)
        self.queue.append(self._functions[node])
        return self._functions[node]

    def class_of(self, node: ast.ClassDef) -> Class:
        """Return the record of a class."""
        return self._classes.setdefault(node, Class())

    @property
    def defines_functions(self) -> bool:
        """Tell whether the program has bodies of its own to learn about."""
        return bool(self._functions)

    @property
    def place(self) -> Place | None:
        """Return where a marker for the current statement goes; none when it returns."""
        if self.statement is None or isinstance(self.statement, ast.Return):
            return None
        return self.statement.lineno, self.statement.col_offset

    def loaded(self, place: Tags) -> Value:
        """Note that data was read, unless it is known not to be the task's."""
        if place & Tag.ELSEWHERE and not place & SIDES:
            return Value(Tag.DATA)
        self.report(Milestone.LOADED_DATA)
        return Value(place & SIDES | Tag.DATA)

    def report(self, milestone: Milestone) -> None:
        """Note that the current statement performs a step."""
        if self.muted:
            return
        if self._sink is not None:
            self._sink.add(milestone)
            return
        place = self.place
        if place is not None:
            self.events.add((place, milestone))
            self.trained = self.trained or milestone is Milestone.TRAINED_MODEL
        elif self.frame.function is not None:
            self.frame.function.returned_milestones.add(milestone)

    def is_given(self, sides: Tags) -> bool:
        """Tell whether the function being walked is called with each of these sides."""
        function = self.frame.function
        given = function.parameters.values() if function else ()
        return any(not sides & ~value.tags for value in given)

    def built(self) -> None:
        """Note that the loops around the current statement make what they train."""
        for loop in self.frame.loops:
            loop.builds = True

    def trains(self) -> None:
        """Note one step of training: the model is trained when the loops around it have ended."""
        if self.muted:
            return
        if self.frame.loops:
            self.frame.loops[-1].trains = True
        elif self.frame.function is not None:
            self.frame.function.trains = True
        else:
            self.report(Milestone.TRAINED_MODEL)

    def judge(self, kind: Tag, *arguments: Tags) -> None:
        """Note a metric or a prediction computed on arguments with these tags."""
        if self.muted or self._sink is not None:
            return
        tags = reduce(or_, arguments, NO_TAGS)
        if kind is not Tag.PREDICTION and self._measures_each_side(arguments):
            return
        if self.frame.function is None:
            self._settle(kind, self.place, tags, after_training=self.trained)
        else:
            sided = [part & SIDES for part in arguments if part & SIDES]
            is_open = not sided or any(part not in ONE_SIDE for part in sided)
            is_mixed = any(part not in ONE_SIDE for part in sided)
            self.frame.pending.append(Judgement(kind, self.place, tags, is_open, is_mixed))

    def _measures_each_side(self, arguments: tuple[Tags, ...]) -> bool:
        """Tell whether a loop walks over training and held-out data: both are done at its end."""
        sided = [part & SIDES for part in arguments if part & SIDES]
        if not sided or any(_BOTH & ~part for part in sided):
            return False
        loop = next((loop for loop in self.frame.loops if loop.walks_sides), None)
        if loop is not None:
            loop.measures = True
        return loop is not None

    def settle_pending(self, function: Function) -> None:
        """Judge what a function body computed, or leave it to where the function is called."""
        function.deferred.clear()
        trained = Milestone.TRAINED_MODEL in self.seen
        for found in self.frame.pending:
            returned = found.is_mixed or (found.is_open and function.returned.has(found.kind))
            if found.place is None and found.kind is Tag.METRIC and not found.is_open:
                sure = measured(found.tags, after_training=trained)
                function.returned_milestones |= {sure} if sure is not None else set()
            elif found.place is None or (returned and function.called):
                before = function.deferred.get(found.kind, NO_TAGS)
                function.deferred[found.kind] = before | found.tags
            else:
                self._settle(found.kind, found.place, found.tags, after_training=trained)

    def _settle(self, kind: Tag, place: Place | None, tags: Tags, *, after_training: bool) -> None:
        if place is None:
            return
        if kind is Tag.PREDICTION:
            self._settle_prediction(place, tags)
        elif milestone := measured(tags, after_training=after_training):
            self.events.add((place, milestone))

    def _settle_prediction(self, place: Place, tags: Tags) -> None:
        if tags & Tag.TEST:
            self.events.add((place, Milestone.PREDICTED_TEST_LABELS))
        elif not tags & SIDES and tags & (Tag.DATA | Tag.UNKNOWN):
            self.guesses.add(place)

    @contextmanager
    def collecting(self) -> Iterator[set[Milestone]]:
        """Collect what an expression that may not be evaluated would report."""
        before, self._sink = self._sink, set()
        try:
            yield self._sink
        finally:
            self._sink = before

    @contextmanager
    def muting(self, *, when: bool = True) -> Iterator[None]:
        """Report nothing for an expression that may never be evaluated."""
        before, self.muted = self.muted, self.muted or when
        try:
            yield
        finally:
            self.muted = before


def measured(tags: Tags, *, after_training: bool) -> Milestone | None:
    """Return which loss a metric on data with these tags is, if it is one."""
    if not tags & _JUDGEABLE:
        return None
    if tags & Tag.HELDOUT:
        return Milestone.TESTING_LOSS
    if tags & Tag.TRAIN:
        return Milestone.TRAINING_LOSS
    return Milestone.TESTING_LOSS if tags & Tag.TEST or after_training else None
