"""Quoting the content of data files safely in a text for a model."""

from __future__ import annotations

import re
import unicodedata

_MARKS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LONG_RUN = re.compile(r"`{9,}")
_CUT = "…"
_UNITS = ("bytes", "KB", "MB", "GB", "TB")


def plain(text: str, most: int) -> str:
    """Return one printable line of at most so many characters."""
    shown = "".join(map(_printable, text[: most + 1]))
    return shown if len(shown) <= most else shown[: most - 1] + _CUT


def name_of(text: str, most: int = 80) -> str:
    """Return a name as inline code, which no backtick of its own ends."""
    return f"`{plain(text, most).replace('`', chr(39))}`"


def fenced(lines: list[str]) -> str:
    """Return lines as a code block, which no backticks of their own end."""
    if not any("`" in line for line in lines):
        return "\n".join(["```", *lines, "```"])
    tamed = [_LONG_RUN.sub("'", line) for line in lines]
    runs = (len(run) for line in tamed for run in re.findall(r"`+", line))
    fence = "`" * max(3, max(runs, default=0) + 1)
    return "\n".join([fence, *tamed, fence])


def size_of(size: float) -> str:
    """Return a number of bytes for people."""
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"


def count_of(number: int, what: str) -> str:
    """Return a number of things, one or many."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return _MARKS.get(character, "\N{REPLACEMENT CHARACTER}")
