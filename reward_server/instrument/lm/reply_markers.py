"""Reads the markers out of a language model's reply, and keeps those that can be trusted.

In `insert` mode the reply names lines. A line belongs to the innermost statement that it is part
of, the last of several that share it. Of a statement with a body only the header counts, and the
marker follows the whole statement. So any line of a call split over many lines works, the line
of `for` means the end of the loop, and an `else:` or a blank line belongs to no statement.

In `rewrite` mode the reply is the whole program with prints added. Every statement must be the
original's next one (an equal tree) or an added `print` of a milestone, which becomes a marker
after the statement before it. One statement too many, too few or altered, and the whole reply is
refused. A print of the original stays the original's, whatever it says. The expression that an
added print would show is checked and never run.

A marker where none may stand, or at a step that cannot be there, is dropped and counted; the
others stay.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, assert_never

from reward_server.extract.markdown import python_block
from reward_server.instrument.lm.plausibility import Plausibility
from reward_server.instrument.lm.prompts import MOST_LINES, Mode
from reward_server.instrument.syntax_tree import (
    FUNCTIONS,
    marker_order,
    names_in,
    parameters_of,
    position_of,
    same_tree,
)
from reward_server.instrument.verification import allowed_positions, find_objection
from reward_server.model import Marker, Milestone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reward_server.instrument.syntax_tree import Position

    Parse = Callable[[str], ast.Module]

_MOST_OF_ONE_KIND = 8
_BY_NUMBER = {str(int(milestone)): milestone for milestone in Milestone}
_BY_LABEL = {milestone.label: milestone for milestone in Milestone}
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_PLAIN = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice),
    *(ast.UnaryOp, ast.USub, ast.Load),
)


class DropReason(StrEnum):
    """Why one marker of a reply was left out."""

    NO_STATEMENT = "not after a statement"
    NOT_ALLOWED = "where no marker may stand"
    IMPLAUSIBLE = "not at such a step"
    UNKNOWN_STEP = "of an unknown step"
    NOT_PLAIN = "showing more than a name"
    UNBOUND = "showing a name unknown there"


class ReplyRefusedError(Exception):
    """The reply cannot be used at all; the text says why and quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class RequestedMarkers:
    """The markers a reply asks for, and how many it asks for in vain."""

    markers: list[Marker] = field(default_factory=list)
    dropped: Counter[DropReason] = field(default_factory=Counter)


def read_markers(
    reply: str, mode: Mode, code: str, tree: ast.Module, parse: Parse
) -> tuple[list[Marker], str | None]:
    """Return the markers of a reply that pass verification, and what was dropped or refused."""
    try:
        requested = _read(reply, mode, tree, parse)
    except ReplyRefusedError as refused:
        return [], str(refused)
    markers = _bounded(_plausible(requested, tree))
    objection = find_objection(code, markers) if markers else None
    if objection is not None:
        return [], objection
    dropped = [f"{count} {reason}" for reason, count in requested.dropped.items() if count]
    return markers, f"left out: {', '.join(dropped)}" if dropped else None


def _read(reply: str, mode: Mode, tree: ast.Module, parse: Parse) -> RequestedMarkers:
    match mode:
        case Mode.INSERT:
            return read_lines(reply, tree)
        case Mode.REWRITE:
            return read_program(reply, tree, parse)
        case never:
            assert_never(never)


def _plausible(requested: RequestedMarkers, tree: ast.Module) -> Iterator[Marker]:
    allowed, plausibility = set(allowed_positions(tree)), Plausibility(tree)
    for marker in dict.fromkeys(requested.markers):
        if (marker.line, marker.column) not in allowed:
            requested.dropped[DropReason.NOT_ALLOWED] += 1
        elif not plausibility.allows(marker):
            requested.dropped[DropReason.IMPLAUSIBLE] += 1
        else:
            yield marker


def _bounded(markers: Iterable[Marker]) -> list[Marker]:
    """Keep the first few markers of each milestone, which is reported only once anyway."""
    kept: Counter[Milestone] = Counter()
    found = []
    for marker in sorted(markers, key=marker_order):
        kept[marker.milestone] += 1
        if kept[marker.milestone] <= _MOST_OF_ONE_KIND:
            found.append(marker)
    return found


def read_lines(reply: str, tree: ast.Module) -> RequestedMarkers:
    """Return the markers that a reply asks for by line.

    Raises:
        ReplyRefusedError: when it is not JSON of the requested shape.
    """
    try:
        requested = _read_requested_lines(json.loads(reply))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        message = "its answer is not the JSON that was asked for"
        raise ReplyRefusedError(message) from None
    statements = _by_line(tree, {line for line, _ in requested})
    found = [
        Marker(*statements[line], milestone) for line, milestone in requested if line in statements
    ]
    return RequestedMarkers(found, Counter({DropReason.NO_STATEMENT: len(requested) - len(found)}))


def _read_requested_lines(reply: Any) -> list[tuple[int, Milestone]]:  # noqa: ANN401 - untrusted
    requested = []
    for number, lines in reply.items():
        if not isinstance(lines, list) or len(lines) > MOST_LINES:
            raise TypeError
        requested += [(_line(line), _BY_NUMBER[number]) for line in lines]
    return requested


def _line(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError
    return number


def _by_line(tree: ast.Module, lines: set[int]) -> dict[int, Position]:
    found: dict[int, Position] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        position = position_of(node)
        for line in lines.intersection(_own_lines(node)):
            found[line] = max(position, found.get(line, position))
    return found


def _own_lines(node: ast.stmt) -> range:
    first = min((part.lineno for part in _parts(node)), default=None)
    if first is None:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return range(node.lineno, max(first, node.lineno + 1))


def _parts(node: ast.stmt) -> Iterator[ast.stmt | ast.pattern]:
    for name in ("body", "cases"):
        for part in getattr(node, name, []):
            yield part.pattern if isinstance(part, ast.match_case) else part


def read_program(reply: str, tree: ast.Module, parse: Parse) -> RequestedMarkers:
    """Return the markers that the prints added to a program stand for.

    Raises:
        ReplyRefusedError: when the reply is not this program with prints added.
    """
    text = reply.replace("\r\n", "\n").replace("\r", "\n")
    block = python_block(text.split("\n"))
    try:
        rewritten = parse(text if block is None else block.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        message = "its answer is not a Python program"
        raise ReplyRefusedError(message) from None
    alignment = _Alignment()
    alignment.align(tree.body, rewritten.body, set())
    return alignment.requested


class _Alignment:
    """Walks the original and the rewritten program side by side."""

    def __init__(self) -> None:
        self.requested = RequestedMarkers()

    def align(self, original: list[ast.stmt], rewritten: list[ast.stmt], bound: set[str]) -> None:
        done = 0
        for statement in rewritten:
            if done < len(original) and _same_header(statement, original[done]):
                self._enter(original[done], statement, bound)
                done += 1
            elif _is_print(statement):
                self._added(statement, original[done - 1] if done else None, bound)
            else:
                _refuse()
        if done < len(original):
            _refuse()

    def _enter(self, original: ast.stmt, rewritten: ast.stmt, bound: set[str]) -> None:
        bound.update(_names_bound(original))
        inner = bound | parameters_of(original.args) if isinstance(original, FUNCTIONS) else bound
        for name in ("body", "orelse", "finalbody"):
            self.align(getattr(original, name, []), getattr(rewritten, name, []), inner)
        for name in ("handlers", "cases"):
            parts = getattr(original, name, []), getattr(rewritten, name, [])
            for left, right in zip(*parts, strict=True):
                bound.update(_names_bound(left))
                self.align(left.body, right.body, bound)

    def _added(self, statement: ast.stmt, before: ast.stmt | None, bound: set[str]) -> None:
        milestone, shown = _read_print(statement)
        if milestone is None:
            self.requested.dropped[DropReason.UNKNOWN_STEP] += 1
        elif shown is not None and not _is_plain(shown):
            self.requested.dropped[DropReason.NOT_PLAIN] += 1
        elif shown is not None and not names_in(shown) <= bound:
            self.requested.dropped[DropReason.UNBOUND] += 1
        elif before is None:
            self.requested.dropped[DropReason.NO_STATEMENT] += 1
        else:
            self.requested.markers.append(Marker(*position_of(before), milestone))


def _refuse() -> None:
    message = "its answer is not the program with prints added"
    raise ReplyRefusedError(message)


def _same_header(left: ast.AST, right: ast.AST) -> bool:
    """Compare two statements without the statements inside them."""
    if type(left) is not type(right):
        return False
    for name in left._fields:
        ours, theirs = getattr(left, name, None), getattr(right, name, None)
        if name not in _BODIES:
            if not same_tree(ours, theirs, with_positions=False):
                return False
        elif name in ("handlers", "cases"):
            if len(ours or ()) != len(theirs or ()):
                return False
            if not all(map(_same_header, ours or (), theirs or ())):
                return False
    return True


def _is_print(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
    return False


def _read_print(statement: ast.stmt) -> tuple[Milestone | None, ast.expr | None]:
    """Return the milestone a print names, and the one expression it shows besides."""
    match statement:
        case ast.Expr(
            value=ast.Call(args=[ast.Constant(value=str(text)), *shown], keywords=[])
        ) if len(shown) < 2:
            words = " ".join(text.lower().split()).rstrip(" :.!")
            return _BY_LABEL.get(words), shown[0] if shown else None
    return None, None


def _is_plain(shown: ast.expr) -> bool:
    if not isinstance(shown, ast.Name | ast.Attribute | ast.Subscript):
        return False
    base: ast.expr = shown
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    return isinstance(base, ast.Name) and all(isinstance(n, _PLAIN) for n in ast.walk(shown))


def _names_bound(node: ast.AST) -> Iterator[str]:
    """Yield the names a statement binds, without the statements inside it."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield node.name
        return
    stack = [node]
    while stack:
        part = stack.pop()
        match part:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
        for name in set(part._fields).difference(_BODIES):
            inner = getattr(part, name, None)
            parts = inner if isinstance(inner, list) else [inner]
            stack += [each for each in parts if isinstance(each, ast.AST)]
