"""Extracts the one program from a submission.

A bare `code` is the whole program. In a `completion` the program is the Python block that
`markdown.py` chooses, and the plan is the prose before it; blocks in other languages never run.

A leading byte-order mark is not part of a program. Whether the code is valid Python is not
checked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reward_server.extract.markdown import python_block
from reward_server.model import ErrorKind, Failure, Program

if TYPE_CHECKING:
    from reward_server.model import Submission

NO_CODE = Failure(ErrorKind.NO_CODE, "the completion holds no Python code block")
NOT_TEXT = Failure(ErrorKind.SYNTAX_ERROR, "the text cannot be encoded as UTF-8")


def extract(submission: Submission) -> Program:
    """Return the program of a submission, or one whose `failure` says why there is none."""
    if submission.code is not None:
        return _checked(submission.code, "")
    text = (submission.completion or "").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    block = python_block(lines)
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
