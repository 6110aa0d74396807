"""Reads an answer that names lines, and finds the statement each line belongs to.

A line belongs to the innermost statement that it is a line of, the last of several that share
it; of a statement with a body only the header counts, and then the marker follows the whole
of it. So the line of a call split over many lines may be any of them, the line of `for` means
the end of the loop, and an `else:` or a blank line belongs to nothing.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from reward_server.instrument.lm.parsed_reply import Dropped, ParsedReply, RefusedAnswerError
from reward_server.instrument.lm.prompts import MOST_LINES
from reward_server.model import Marker, Milestone

if TYPE_CHECKING:
    from collections.abc import Iterator

_BY_NUMBER = {str(int(milestone)): milestone for milestone in Milestone}


def read_lines(answer: str, tree: ast.Module) -> ParsedReply:
    """Return the markers that an answer asks for.

    Raises:
        RefusedAnswerError: when it is not JSON of the shape that was asked for.
    """
    try:
        places = _read_places(json.loads(answer))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        message = "its answer is not the JSON that was asked for"
        raise RefusedAnswerError(message) from None
    statements = _by_line(tree, {line for line, _ in places})
    found = [
        Marker(*statements[line], milestone) for line, milestone in places if line in statements
    ]
    return ParsedReply(found, Counter({Dropped.NO_STATEMENT: len(places) - len(found)}))


def _read_places(answer: Any) -> list[tuple[int, Milestone]]:  # noqa: ANN401 - anything may come
    places = []
    for number, lines in answer.items():
        if not isinstance(lines, list) or len(lines) > MOST_LINES:
            raise TypeError
        places += [(_line(line), _BY_NUMBER[number]) for line in lines]
    return places


def _line(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError
    return number


def _by_line(tree: ast.Module, lines: set[int]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        place = node.lineno, node.col_offset
        for line in lines.intersection(_own_lines(node)):
            found[line] = max(place, found.get(line, place))
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
