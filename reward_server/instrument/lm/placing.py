"""Turns what a language model answered into markers that can be believed.

A marker that cannot stand where it was put, or names a step that cannot be there, is left out
and counted; the others stay. An answer that cannot be read as one is refused as a whole.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, assert_never

from reward_server.instrument.lm.insertion import read_lines
from reward_server.instrument.lm.parsed_reply import Dropped, RefusedAnswerError
from reward_server.instrument.lm.plausibility import Plausibility
from reward_server.instrument.lm.prompts import Mode
from reward_server.instrument.lm.rewrite import read_program
from reward_server.instrument.verification import objection, places

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Iterator

    from reward_server.instrument.lm.parsed_reply import ParsedReply
    from reward_server.model import Marker, Milestone

_MOST_OF_ONE_KIND = 8


def place(
    answer: str, mode: Mode, code: str, tree: ast.Module, parse: Callable[[str], ast.Module]
) -> tuple[list[Marker], str | None]:
    """Return the markers of an answer that hold, and what was left out or refused."""
    try:
        reading = _read(answer, mode, tree, parse)
    except RefusedAnswerError as refused:
        return [], str(refused)
    markers = _bounded(_kept(reading, tree))
    refusal = objection(code, markers) if markers else None
    if refusal is not None:
        return [], refusal
    return markers, _summary(reading.dropped)


def _read(
    answer: str, mode: Mode, tree: ast.Module, parse: Callable[[str], ast.Module]
) -> ParsedReply:
    match mode:
        case Mode.INSERT:
            return read_lines(answer, tree)
        case Mode.REWRITE:
            return read_program(answer, tree, parse)
        case never:
            assert_never(never)


def _kept(reading: ParsedReply, tree: ast.Module) -> Iterator[Marker]:
    allowed, plausibility = set(places(tree)), Plausibility(tree)
    for marker in dict.fromkeys(reading.wanted):
        if (marker.line, marker.column) not in allowed:
            reading.dropped[Dropped.NO_PLACE] += 1
        elif not plausibility.allows(marker):
            reading.dropped[Dropped.IMPLAUSIBLE] += 1
        else:
            yield marker


def _bounded(markers: Iterable[Marker]) -> list[Marker]:
    """Keep the first few places of each milestone; each is reported once anyway."""
    seen: Counter[Milestone] = Counter()
    found = []
    for marker in sorted(markers, key=lambda m: (m.line, m.column, m.milestone)):
        seen[marker.milestone] += 1
        if seen[marker.milestone] <= _MOST_OF_ONE_KIND:
            found.append(marker)
    return found


def _summary(dropped: Counter[Dropped]) -> str | None:
    told = [f"{count} {reason}" for reason, count in dropped.items() if count]
    return f"left out: {', '.join(told)}" if told else None
