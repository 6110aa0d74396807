"""The request to the language model: the program's text, and nothing else of a submission.

This package knows neither the task nor its data, labels or grader. The model sees the program
without its comments, because comments are where a program can talk to its reader. Strings stay:
they are part of what runs.

The words are in `prompts.toml`. `PROMPT_VERSION` is part of the cache key of replies: raise it
whenever the wording or the reading of replies changes.
"""

from __future__ import annotations

import io
import tokenize
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never

from reward_server.model import Milestone

PROMPT_VERSION = 1
MOST_LINES = 24

_LINES_PER_STEP = 2
_LARGEST_LINE = 9999
_INSERT_TOKENS = 192
_PRINTS_TOKENS = 256
_BYTES_PER_TOKEN = 3
_TEMPLATE_TOKENS = 64

_WORDS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_STEPS = "\n".join(
    f"{int(step)}. {step.label}: {_WORDS['meanings'][step.name]}" for step in Milestone
)
_LINES: dict[str, Any] = {
    "type": "array",
    "maxItems": _LINES_PER_STEP,
    "items": {"type": "integer", "minimum": 1, "maximum": _LARGEST_LINE},
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {str(int(milestone)): _LINES for milestone in Milestone},
    "required": [str(int(milestone)) for milestone in Milestone],
    "additionalProperties": False,
}


class Mode(StrEnum):
    """Whether the model names lines or returns the program with prints added."""

    INSERT = "insert"
    REWRITE = "rewrite"


@dataclass(frozen=True, slots=True)
class LmRequest:
    """The messages, the most tokens of the reply and the JSON schema it must follow."""

    messages: tuple[dict[str, str], ...]
    max_tokens: int
    schema: dict[str, Any] | None = None

    @property
    def tokens(self) -> int:
        """Return about how many tokens of context the request and its reply take together."""
        texts = (message["content"] for message in self.messages)
        return sum(map(count_tokens, texts)) + _TEMPLATE_TOKENS + self.max_tokens


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has; code has more bytes per token."""
    return len(text.encode()) // _BYTES_PER_TOKEN + 1


def build_request(text: str, mode: Mode) -> LmRequest:
    """Return the request about a program without comments."""
    match mode:
        case Mode.INSERT:
            lines = text.split("\n")
            numbered = "\n".join(f"{number}| {line}" for number, line in enumerate(lines, 1))
            return LmRequest(_messages(mode, numbered), _INSERT_TOKENS, _SCHEMA)
        case Mode.REWRITE:
            longest = count_tokens(text) * 5 // 4 + _PRINTS_TOKENS
            return LmRequest(_messages(mode, f"```python\n{text}\n```"), longest)
        case never:
            assert_never(never)


def _messages(mode: Mode, user: str) -> tuple[dict[str, str], ...]:
    system = _WORDS["instructions"][mode].replace("$steps", _STEPS)
    return {"role": "system", "content": system}, {"role": "user", "content": user}


def without_comments(code: str) -> str | None:
    """Return the program with every comment blanked, or nothing if it cannot be tokenized."""
    text = code.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column].rstrip()
    except (tokenize.TokenError, SyntaxError, IndexError):
        return None
    return "\n".join(lines).rstrip("\n")
