"""A program without its comments, line for line.

Comments are where a program can talk to whoever reads it. The language model places markers
in what is run, so it is shown only that. Strings stay: they are part of what is run.
"""

from __future__ import annotations

import io
import tokenize


def without_comments(code: str) -> str | None:
    """Return the program with every comment blanked, or nothing if it cannot be told apart."""
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
