"""A call with everything in it evaluated, and what both kinds of rules ask of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.instrument.static.scopes import names_a_metric
from reward_server.instrument.static.values import FLOWING, NOTHING, Tag, Tags, Value, join, union

if TYPE_CHECKING:
    from reward_server.instrument.static.scopes import Function


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call with everything in it evaluated."""

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
        """Return what each argument tells about the data it was made from."""
        return [value.tags & FLOWING for value in (*self.positional, *self.keywords.values())]

    @property
    def first(self) -> Value:
        """Return the first argument, however it was passed."""
        return next(iter((*self.positional, *self.keywords.values())), NOTHING)


def bind_parameters(function: Function, call: Invocation) -> None:
    """Remember what a function of the program is called with."""
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


def is_own_metric(function: Function, call: Invocation) -> bool:
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
    used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return {argument.arg for argument in node.args.args[:2]} <= used


def opens_for_reading(node: ast.Call, position: int) -> bool:
    """Tell whether a call that opens a file surely opens it to read."""
    given = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    mode = (node.args[position : position + 1] or given or [ast.Constant("r")])[0]
    if not (isinstance(mode, ast.Constant) and isinstance(mode.value, str)):
        return False
    return "r" in mode.value and "+" not in mode.value


def reduced(tags: Tags) -> Value:
    """Return the value of a mean, a sum or a root of something."""
    return Value(tags & FLOWING | Tag.REDUCED)
