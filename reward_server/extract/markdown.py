"""Finds the code blocks of a text, by the same rule for every model's Markdown.

- A fence is three or more backticks or tildes, at any indentation; the content loses the
  indentation of its fence. A backtick fence has no further backtick on its line.
- A block closes at a line that holds only a fence of the same character, at least as long;
  an unterminated block runs to the end of the text.
- Blocks tagged python, py, python3, py3 or ipython (in any case; `python title=x` and
  `{.python}` too) are Python. Untagged blocks count only if no block is tagged as Python.
- The longest block wins, the last one among equals.

Time is linear in the length of the text, whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PYTHON = frozenset({"python", "py", "python3", "py3", "ipython"})
_BREAKS = str.maketrans(dict.fromkeys("{},:;", " "))


@dataclass(frozen=True, slots=True)
class _Fence:
    character: str
    length: int
    indentation: int
    info: str

    @property
    def language(self) -> str:
        words = self.info[:100].translate(_BREAKS).split()
        return words[0].lstrip(".").lower() if words else ""

    def closes(self, opening: _Fence) -> bool:
        same = self.character == opening.character and self.length >= opening.length
        return same and not self.info


@dataclass(frozen=True, slots=True)
class Block:
    """The code between two fences, and the line of the opening one."""

    language: str
    first_line: int
    code: str


def python_block(lines: list[str]) -> Block | None:
    """Return the block of these lines that is the program."""
    blocks = list(_blocks(lines))
    tagged = [block for block in blocks if block.language in _PYTHON]
    candidates = tagged or [block for block in blocks if not block.language]
    return max(reversed(candidates), key=lambda block: len(block.code), default=None)


def _blocks(lines: list[str]) -> Iterator[Block]:
    opening, first_line = None, 0
    for number, line in enumerate(lines):
        fence = _fence(line)
        if opening is None:
            opening, first_line = fence, number
        elif fence is not None and fence.closes(opening):
            yield _block(opening, first_line, lines[first_line + 1 : number])
            opening = None
    if opening is not None:
        yield _block(opening, first_line, lines[first_line + 1 :])


def _block(opening: _Fence, first_line: int, lines: list[str]) -> Block:
    code = "\n".join(_dedent(line, opening.indentation) for line in lines)
    return Block(opening.language, first_line, code)


def _fence(line: str) -> _Fence | None:
    stripped = line.strip()
    character = stripped[:1]
    if character not in ("`", "~"):
        return None
    info = stripped.lstrip(character)
    length = len(stripped) - len(info)
    if length < 3 or (character == "`" and "`" in info):
        return None
    return _Fence(character, length, len(line) - len(line.lstrip()), info.strip())


def _dedent(line: str, indentation: int) -> str:
    head = line[:indentation]
    return head.lstrip() + line[indentation:]
