"""Where names come from: scopes, imports, definitions, calls, and what a name itself suggests."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from reward_server.instrument.static.imports import imported_names
from reward_server.instrument.static.library_names import role_of
from reward_server.instrument.static.values import (
    NO_TAGS,
    NOTHING,
    PROPAGATED,
    SIDE_HINTABLE,
    SIDES,
    Tag,
    Tags,
    Value,
    join,
    union,
)
from reward_server.instrument.syntax_tree import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reward_server.model import Milestone

    FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_BUILTINS = frozenset(dir(builtins))
_MAX_STARS = 32
_SYSTEM_PATHS = ("/proc/", "/etc/", "/sys/", "/dev/", "/usr/", "/inside/")
_SIDE_WORDS = {
    Tag.TRAIN: frozenset({"train", "training", "tr", "trn"}),
    Tag.HELDOUT: frozenset(
        {"val", "valid", "validation", "va", "hold", "holdout", "heldout", "oof", "dev", "eval"}
    ),
    Tag.TEST: frozenset({"test", "testing", "tst", "te"}),
}
_MODEL_WORDS = frozenset({"model", "net", "network", "clf", "classifier", "regressor"})
_ROW_WORDS = frozenset(
    {"idx", "index", "indices", "ix", "ind", "inds", "ids", "mask", "msk", "rows", "i", "fold"}
)
_METRIC_NAMES = (
    "loss logloss rmse rmsle mse mae msle auc error err score acc accuracy f1 kappa qwk r2 jaccard "
    "dice pearson correlation gini mape smape"
)
_METRIC_WORDS = frozenset(_METRIC_NAMES.split())


@dataclass(eq=False, slots=True)
class Function:
    """A function of the program: its arguments and what it returned, over all passes."""

    node: FunctionNode
    scope: Scope
    owner: Class | None = None
    parameters: dict[str, Value] = field(default_factory=dict)
    returned: Value = NOTHING
    returned_milestones: set[Milestone] = field(default_factory=set)
    deferred: dict[Tag, Tags] = field(default_factory=dict)
    called: bool = False
    trains: bool = False

    @property
    def argument_tags(self) -> tuple[Tags, ...]:
        """Return the tags of what it returned and was called with so far."""
        return self.returned.tags, *(value.tags for value in self.parameters.values())


@dataclass(eq=False, slots=True)
class Class:
    """A class of the program, with what is known of the attributes of its instances."""

    tags: Tags = NO_TAGS
    is_dataset: bool = False
    attributes: dict[str, Value] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)
    bases: list[Class] = field(default_factory=list)

    def member(self, name: str) -> Value | None:
        """Return an attribute or method of an instance, looked up through direct bases."""
        for home in (self, *self.bases):
            if name in home.methods:
                return Value(callee=home.methods[name])
            if name in home.attributes:
                return home.attributes[name]
        return None

    def set_attribute(self, name: str, value: Value) -> None:
        """Remember that instances may hold this value."""
        self.attributes[name] = join(self.attributes.get(name, NOTHING), value)


@dataclass(eq=False, slots=True)
class Scope:
    """The names of one module, class or function, as they stand at the current statement."""

    parent: Scope | None = None
    owner: Class | None = None
    names: dict[str, Value] = field(default_factory=dict)
    all_bindings: dict[str, Value] = field(default_factory=dict)
    star_imports: list[str] = field(default_factory=list)
    missing_imports: Mapping[str, str] = field(default_factory=dict)

    def bind(self, name: str, value: Value) -> None:
        """Bind a name to a value from here on."""
        self.names[name] = value
        self.all_bindings[name] = join(self.all_bindings.get(name, NOTHING), value)

    def add_star_import(self, module: str) -> None:
        """Remember a star import; beyond the first few, their names stay unknown."""
        if module not in self.star_imports and len(self.star_imports) < _MAX_STARS:
            self.star_imports.append(module)

    def look_up(self, name: str) -> Value:
        """Return what a name stands for, with the side of the data it suggests."""
        return with_name_hint(name, self._find(name))

    def _find(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        scope: Scope | None = self
        while scope is not None:
            if name in scope.all_bindings and (scope is self or scope.owner is None):
                return scope.all_bindings[name]
            for module in scope.star_imports:
                if role_of(f"{module}.{name}") is not None:
                    return Value(path=f"{module}.{name}")
            scope = scope.parent
        if name in _BUILTINS:
            return Value(path=f"builtins.{name}")
        return (
            Value(path=usual) if (usual := self.missing_imports.get(name)) else Value(Tag.UNKNOWN)
        )


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call whose receiver and arguments are evaluated."""

    node: ast.Call
    function: Value
    receiver: Value
    method: str
    positional: tuple[Value, ...]
    keywords: dict[str, Value]

    @property
    def arguments(self) -> Tags:
        """Return every tag of every argument."""
        return union(self.positional) | union(self.keywords.values())

    @property
    def data(self) -> list[Tags]:
        """Return what is known of the data that each argument was made from."""
        return [value.tags & PROPAGATED for value in (*self.positional, *self.keywords.values())]

    @property
    def first(self) -> Value:
        """Return the first argument, however it was passed."""
        return next(iter((*self.positional, *self.keywords.values())), NOTHING)


def bind_parameters(function: Function, call: Invocation) -> None:
    """Record the arguments with which a function of the program is called."""
    arguments = function.node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if function.owner is not None and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    given = dict(zip(names, call.positional, strict=False))
    known = {*names, *(argument.arg for argument in arguments.kwonlyargs)}
    given |= {name: value for name, value in call.keywords.items() if name in known}
    for name, value in given.items():
        function.parameters[name] = join(function.parameters.get(name, NOTHING), value)
    function.called = True


def is_program_metric(function: Function, call: Invocation) -> bool:
    """Tell whether a function of the program compares predictions with the truth."""
    node = function.node
    if isinstance(node, ast.Lambda) or not names_a_metric(node.name) or len(call.positional) < 2:
        return False
    left, right = call.positional[:2]
    known = Tag.DATA | Tag.UNKNOWN
    if left.has(Tag.PREDICTION) == right.has(Tag.PREDICTION) or not (
        left.has(known) and right.has(known)
    ):
        return False
    return {argument.arg for argument in node.args.args[:2]} <= names_in(node)


def bind_import(scope: Scope, node: ast.Import | ast.ImportFrom) -> None:
    """Bind the names an import statement makes to their qualified names."""
    for name, path in imported_names(node):
        if name == "*":
            scope.add_star_import(path.removesuffix(".*"))
        else:
            scope.bind(name, Value(path=path))


def with_name_hint(name: str, value: Value) -> Value:
    """Return data with the side its name suggests, where its origin leaves that open.

    A part of the training data that is called validation or test data was held out of it.
    """
    if not value.has(SIDE_HINTABLE):
        return value
    sides, hint = value.tags & SIDES, side_of(name)
    if sides == Tag.TRAIN and hint in (Tag.HELDOUT, Tag.TEST):
        hint = Tag.HELDOUT
    elif sides & Tag.TRAIN and hint == Tag.HELDOUT:
        pass  # both kinds of data go through this function; the name decides
    elif sides == Tag.HELDOUT and hint == Tag.TRAIN and not value.has(Tag.PREDICTION):
        pass  # the first rows were held out, the rest is what is trained on
    elif not hint or hint == sides or (sides and hint & ~sides):
        return value
    return Value(value.tags & ~SIDES | hint, value.path, value.items, value.each)


@lru_cache(maxsize=4096)
def side_of(name: str) -> Tags:
    """Return the side of the data that a name suggests, or none."""
    found = NO_TAGS
    for word in _words(name[:200]):
        for side, words in _SIDE_WORDS.items():
            if word in words or (word[:1] in "xy" and word[1:] in words):
                found |= side
    return found if found in _SIDE_WORDS else NO_TAGS


@lru_cache(maxsize=4096)
def side_of_rows(name: str) -> Tags:
    """Return the side that a name of row numbers or of a mask suggests, or none."""
    words = set(_words(name[:200]))
    sides = set().union(*_SIDE_WORDS.values())
    return side_of(name) if words <= sides | _ROW_WORDS else NO_TAGS


def side_of_path(text: str) -> Tags:
    """Return the side that a file name suggests, or that it is not the task's data."""
    if len(text) > 300 or not ("." in text or "/" in text) or "\n" in text:
        return NO_TAGS
    name = text.rstrip("/").rpartition("/")[2]
    if text.startswith(_SYSTEM_PATHS) or any(w.endswith("submission") for w in _words(name)):
        return Tag.NOT_TASK_DATA
    return side_of(name)


@lru_cache(maxsize=4096)
def names_a_metric(name: str) -> bool:
    """Tell whether a name is that of a loss or a score."""
    return not _METRIC_WORDS.isdisjoint(_words(name[:200]))


def names_a_model(name: str) -> bool:
    """Tell whether a name is that of a whole model."""
    return not _MODEL_WORDS.isdisjoint(_words(name[:200]))


def _words(name: str) -> Iterable[str]:
    spaced = []
    for before, character in zip(" " + name, name, strict=False):
        if character.isupper() and before.islower():
            spaced.append(" ")
        spaced.append(character.lower() if character.isalpha() or character in "12" else " ")
    return [
        word if word in _METRIC_WORDS else word.rstrip("12") for word in "".join(spaced).split()
    ]
