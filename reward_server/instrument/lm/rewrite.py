"""Reads an answer that is the whole program with prints added.

The answer is walked beside the original. Every statement must be the original's next one (equal
as a tree) or an added `print` of a milestone, which becomes a marker after the statement before
it; an added print that is not quite that is left out. Anything else, one statement too many, too
few or altered, and the whole answer is refused. A print that the original has is the original's,
whatever it says. What an added print would show is only looked at: nothing of it is ever run.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from reward_server.extract.markdown import python_block
from reward_server.instrument.lm.parsed_reply import Dropped, ParsedReply, RefusedAnswerError
from reward_server.model import Marker, Milestone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BY_LABEL = {milestone.label: milestone for milestone in Milestone}
_PLAIN = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice),
    *(ast.UnaryOp, ast.USub, ast.Load),
)


def read_program(answer: str, tree: ast.Module, parse: Callable[[str], ast.Module]) -> ParsedReply:
    """Return the markers that the prints added to a program stand for.

    Raises:
        RefusedAnswerError: when the answer is not this program with prints added.
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    block = python_block(text.split("\n"))
    try:
        rewritten = parse(text if block is None else block.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        message = "its answer is not a Python program"
        raise RefusedAnswerError(message) from None
    alignment = _Alignment()
    alignment.walk(tree.body, rewritten.body, set())
    return alignment.reading


class _Alignment:
    def __init__(self) -> None:
        self.reading = ParsedReply()

    def walk(self, original: list[ast.stmt], answer: list[ast.stmt], bound: set[str]) -> None:
        done = 0
        for statement in answer:
            if done < len(original) and _same_header(statement, original[done]):
                self._enter(original[done], statement, bound)
                done += 1
            elif _is_print(statement):
                self._added(statement, original[done - 1] if done else None, bound)
            else:
                _refuse()
        if done < len(original):
            _refuse()

    def _enter(self, original: ast.stmt, answer: ast.stmt, bound: set[str]) -> None:
        bound.update(_names_bound(original))
        inner = bound | _parameters(original) if isinstance(original, _FUNCTIONS) else bound
        for name in ("body", "orelse", "finalbody"):
            self.walk(getattr(original, name, []), getattr(answer, name, []), inner)
        for name in ("handlers", "cases"):
            parts = getattr(original, name, []), getattr(answer, name, [])
            for left, right in zip(*parts, strict=True):
                bound.update(_names_bound(left))
                self.walk(left.body, right.body, bound)

    def _added(self, statement: ast.stmt, before: ast.stmt | None, bound: set[str]) -> None:
        milestone, shown = _read_print(statement)
        if milestone is None:
            self.reading.dropped[Dropped.UNKNOWN_STEP] += 1
        elif shown is not None and not _is_plain(shown):
            self.reading.dropped[Dropped.NOT_PLAIN] += 1
        elif shown is not None and not _names(shown) <= bound:
            self.reading.dropped[Dropped.UNBOUND] += 1
        elif before is None:
            self.reading.dropped[Dropped.NO_STATEMENT] += 1
        else:
            self.reading.wanted.append(Marker(before.lineno, before.col_offset, milestone))


def _refuse() -> None:
    message = "its answer is not the program with prints added"
    raise RefusedAnswerError(message)


def _same_header(left: ast.AST, right: ast.AST) -> bool:
    """Compare all of two statements but the statements in them."""
    if type(left) is not type(right):
        return False
    for name in left._fields:
        ours, theirs = getattr(left, name, None), getattr(right, name, None)
        if name not in _BODIES:
            if not _same(ours, theirs):
                return False
        elif name in ("handlers", "cases"):
            if len(ours or ()) != len(theirs or ()):
                return False
            if not all(map(_same_header, ours or (), theirs or ())):
                return False
    return True


def _same(left: object, right: object) -> bool:
    """Compare two parts of trees at any depth, wherever they stand in their texts."""
    stack = [(left, right)]
    while stack:
        ours, theirs = stack.pop()
        if type(ours) is not type(theirs):
            return False
        if isinstance(ours, ast.AST):
            stack.extend((getattr(ours, n, None), getattr(theirs, n, None)) for n in ours._fields)
        elif isinstance(ours, list) and isinstance(theirs, list):
            if len(ours) != len(theirs):
                return False
            stack.extend(zip(ours, theirs, strict=True))
        elif repr(ours) != repr(theirs):
            return False
    return True


def _is_print(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
    return False


def _read_print(statement: ast.stmt) -> tuple[Milestone | None, ast.expr | None]:
    """Return the milestone a print names, and the one expression that it shows beside it."""
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


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _names_bound(node: ast.AST) -> Iterator[str]:
    """Return what a statement binds, leaving aside the statements in it."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
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
        for field in set(part._fields).difference(_BODIES):
            inner = getattr(part, field, None)
            parts = inner if isinstance(inner, list) else [inner]
            stack += [each for each in parts if isinstance(each, ast.AST)]
