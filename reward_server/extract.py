"""From what a model wrote to the one program in it.

A bare `code` is the program, whole. In a `completion` the rule is:

- A fence is three or more backticks or tildes, at any indentation; the content loses the
  indentation of its fence. A backtick fence has no further backtick on its line.
- A block closes at a line that holds only a fence of the same character, at least as long;
  an unterminated block runs to the end of the text.
- Blocks tagged python, py, python3, py3 or ipython (in any case; `python title=x` and
  `{.python}` too) are Python. Untagged blocks count only if no block is tagged as Python.
  Blocks in other languages are never run.
- Of several blocks the longest is taken, the last among equals.
- The plan is the prose before the chosen block.

A leading byte-order mark is not part of a program. Whether the code is Python is not asked
here. Time is linear in the length of the text, whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.model import ErrorKind, Failure, Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reward_server.model import Submission

NO_CODE = Failure(ErrorKind.NO_CODE, "the completion holds no Python code block")
NOT_TEXT = Failure(ErrorKind.SYNTAX_ERROR, "the text cannot be encoded as UTF-8")

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
class _Block:
    language: str
    first_line: int
    code: str


def extract(submission: Submission) -> Program:
    """Return the program a submission holds, or one that carries why there is none."""
    if submission.code is not None:
        return _checked(submission.code, "")
    text = (submission.completion or "").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    block = _choose(list(_blocks(lines)))
    if block is None:
        return _checked("", text)
    return _checked(block.code, "\n".join(lines[: block.first_line]).strip())


def _checked(code: str, plan: str) -> Program:
    code = code.removeprefix("\ufeff")
    if not (_is_text(code) and _is_text(plan)):
        return Program(_as_text(code), _as_text(plan), NOT_TEXT)
    if not code.strip():
        return Program("", plan, NO_CODE)
    return Program(code, plan)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _choose(blocks: list[_Block]) -> _Block | None:
    tagged = [block for block in blocks if block.language in _PYTHON]
    candidates = tagged or [block for block in blocks if not block.language]
    return max(reversed(candidates), key=lambda block: len(block.code), default=None)


def _blocks(lines: list[str]) -> Iterator[_Block]:
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


def _block(opening: _Fence, first_line: int, lines: list[str]) -> _Block:
    code = "\n".join(_dedent(line, opening.indentation) for line in lines)
    return _Block(opening.language, first_line, code)


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
