"""What the analyzer has recognised so far, and which statement it is at.

It reports loads, models and training at once. The milestone of a metric or a prediction depends
on the data it was computed on. In a function that returns the result, the callers decide on the
data, so the result is deferred to each call site.
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
    from reward_server.instrument.syntax_tree import Position


_BOTH = Tag.TRAIN | Tag.HELDOUT
_ASSESSABLE = Tag.PREDICTION | Tag.UNKNOWN


@dataclass(eq=False, slots=True)
class Loop:
    """A loop around the current statement, and what its body has been seen to do."""

    builds: bool = False
    trains: bool = False
    iterates_sides: bool = False
    measures: bool = False


@dataclass(frozen=True, slots=True)
class PendingResult:
    """A metric or a prediction in a function; open if its callers decide on the data."""

    kind: Tag
    position: Position | None
    tags: Tags
    is_open: bool
    is_mixed: bool


@dataclass(eq=False, slots=True)
class Frame:
    """The body being analyzed, with the results that wait for its end."""

    scope: Scope
    function: Function | None = None
    loops: list[Loop] = field(default_factory=list)
    pending: list[PendingResult] = field(default_factory=list)
    no_grad: bool = False


class AnalysisState:
    """The state of one analysis: what was learned over all passes, and found in this one."""

    def __init__(self) -> None:
        self.events: set[tuple[Position, Milestone]] = set()
        self.possible_predictions: set[Position] = set()
        self.previous_milestones: frozenset[Milestone] = frozenset()
        self.replaced: set[str] = set()
        self.module = Scope()
        self.frame = Frame(self.module)
        self.statement: ast.stmt | None = None
        self.muted = False
        self.trained = False
        self.queue: list[Function] = []
        self.evaluation_sets: tuple[Tags, ...] = ()
        self.study_is_scored = False
        self.saved: dict[str, Value] = {}
        self.arrays: set[tuple[object, str]] = set()
        self.updated: set[tuple[object, str]] = set()
        self.weights: set[tuple[object, str]] = set()
        self._functions: dict[FunctionNode, Function] = {}
        self._classes: dict[ast.ClassDef, Class] = {}
        self._collected: set[Milestone] | None = None

    @property
    def learned(self) -> tuple[object, ...]:
        """Return what no longer changes once further passes are useless."""
        argument_tags = [function.argument_tags for function in self._functions.values()]
        return (
            self.events,
            self.possible_predictions,
            len(self.updated),
            len(self.weights),
            argument_tags,
        )

    def start_pass(self) -> None:
        """Begin a pass: forget what was reported, keep what was learned."""
        self.previous_milestones = frozenset(milestone for _, milestone in self.events)
        self.events, self.possible_predictions, self.trained = set(), set(), False
        self.frame = Frame(self.module)
        self.module.names.clear()

    def function_of(self, node: FunctionNode, owner: Class | None = None) -> Function:
        """Return the record of a function and queue its body for this pass."""
        if node not in self._functions:
            parent = self.frame.scope
            scope = Scope(parent, missing_imports=parent.missing_imports)
            self._functions[node] = Function(node, scope, owner)
        self.queue.append(self._functions[node])
        return self._functions[node]

    def class_of(self, node: ast.ClassDef) -> Class:
        """Return the record of a class."""
        return self._classes.setdefault(node, Class())

    @property
    def defines_functions(self) -> bool:
        """Tell whether the program defines functions."""
        return bool(self._functions)

    @property
    def position(self) -> Position | None:
        """Return where a marker for the current statement goes; a `return` has no place for one."""
        if self.statement is None or isinstance(self.statement, ast.Return):
            return None
        return self.statement.lineno, self.statement.col_offset

    def report_load(self, origin: Tags) -> Value:
        """Report that data is read, unless it is known not to be the task's."""
        if origin & Tag.NOT_TASK_DATA and not origin & SIDES:
            return Value(Tag.DATA)
        self.report(Milestone.LOADED_DATA)
        return Value(origin & SIDES | Tag.DATA)

    def report(self, milestone: Milestone) -> None:
        """Report that the current statement completes a step."""
        if self.muted:
            return
        if self._collected is not None:
            self._collected.add(milestone)
            return
        position = self.position
        if position is not None:
            self.events.add((position, milestone))
            self.trained = self.trained or milestone is Milestone.TRAINED_MODEL
        elif self.frame.function is not None:
            self.frame.function.returned_milestones.add(milestone)

    def called_with(self, sides: Tags) -> bool:
        """Tell whether the function being analyzed is called with each of these sides."""
        function = self.frame.function
        given = function.parameters.values() if function else ()
        return any(not sides & ~value.tags for value in given)

    def note_construction(self) -> None:
        """Note that the loops around the current statement create what they train."""
        for loop in self.frame.loops:
            loop.builds = True

    def trains(self) -> None:
        """Note one training step: the model is trained once the loops around it end."""
        if self.muted:
            return
        if self.frame.loops:
            self.frame.loops[-1].trains = True
        elif self.frame.function is not None:
            self.frame.function.trains = True
        else:
            self.report(Milestone.TRAINED_MODEL)

    def record_result(self, kind: Tag, *arguments: Tags) -> None:
        """Record a metric or a prediction computed on arguments with these tags."""
        if self.muted or self._collected is not None:
            return
        tags = reduce(or_, arguments, NO_TAGS)
        if kind is not Tag.PREDICTION and self._measures_both_sides(arguments):
            return
        if self.frame.function is None:
            self._resolve(kind, self.position, tags, after_training=self.trained)
        else:
            sided = [part & SIDES for part in arguments if part & SIDES]
            is_open = not sided or any(part not in ONE_SIDE for part in sided)
            is_mixed = any(part not in ONE_SIDE for part in sided)
            self.frame.pending.append(PendingResult(kind, self.position, tags, is_open, is_mixed))

    def _measures_both_sides(self, arguments: tuple[Tags, ...]) -> bool:
        """Tell whether a loop iterates over both sides; then both losses are known at its end."""
        sided = [part & SIDES for part in arguments if part & SIDES]
        if not sided or any(_BOTH & ~part for part in sided):
            return False
        loop = next((loop for loop in self.frame.loops if loop.iterates_sides), None)
        if loop is not None:
            loop.measures = True
        return loop is not None

    def resolve_pending(self, function: Function) -> None:
        """Resolve what a function body computed, or defer it to where the function is called."""
        function.deferred.clear()
        trained = Milestone.TRAINED_MODEL in self.previous_milestones
        for found in self.frame.pending:
            returned = found.is_mixed or (found.is_open and function.returned.has(found.kind))
            if found.position is None and found.kind is Tag.METRIC and not found.is_open:
                sure = loss_milestone(found.tags, after_training=trained)
                function.returned_milestones |= {sure} if sure is not None else set()
            elif found.position is None or (returned and function.called):
                before = function.deferred.get(found.kind, NO_TAGS)
                function.deferred[found.kind] = before | found.tags
            else:
                self._resolve(found.kind, found.position, found.tags, after_training=trained)

    def _resolve(
        self, kind: Tag, position: Position | None, tags: Tags, *, after_training: bool
    ) -> None:
        if position is None:
            return
        if kind is Tag.PREDICTION:
            self._resolve_prediction(position, tags)
        elif milestone := loss_milestone(tags, after_training=after_training):
            self.events.add((position, milestone))

    def _resolve_prediction(self, position: Position, tags: Tags) -> None:
        if tags & Tag.TEST:
            self.events.add((position, Milestone.PREDICTED_TEST_LABELS))
        elif not tags & SIDES and tags & (Tag.DATA | Tag.UNKNOWN):
            self.possible_predictions.add(position)

    @contextmanager
    def collecting(self) -> Iterator[set[Milestone]]:
        """Collect what an expression that may not run would report."""
        before, self._collected = self._collected, set()
        try:
            yield self._collected
        finally:
            self._collected = before

    @contextmanager
    def muting(self, *, when: bool = True) -> Iterator[None]:
        """Report nothing for an expression that may never run."""
        before, self.muted = self.muted, self.muted or when
        try:
            yield
        finally:
            self.muted = before


def loss_milestone(tags: Tags, *, after_training: bool) -> Milestone | None:
    """Return which loss a metric computed on data with these tags is, if any."""
    if not tags & _ASSESSABLE:
        return None
    if tags & Tag.HELDOUT:
        return Milestone.TESTING_LOSS
    if tags & Tag.TRAIN:
        return Milestone.TRAINING_LOSS
    return Milestone.TESTING_LOSS if tags & Tag.TEST or after_training else None
