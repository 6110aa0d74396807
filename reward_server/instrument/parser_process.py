"""The parsing child: the only place where a program's text meets the Python parser.

A question holds the code as a blob and what to do besides compiling it: `find` markers, check
the `markers` given, show the code as a `view` without comments, or read a language model's
`answer` about it. The answer is `syntax_error` with a line, or the markers that passed
verification and, when they did not, the reason. A fault of the finder, or an answer that cannot
be read, costs a program its markers and never its run.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, boundary
from reward_server.instrument.lm.comments import without_comments
from reward_server.instrument.lm.placing import place
from reward_server.instrument.lm.prompts import Mode
from reward_server.instrument.static.analyzer import find_markers
from reward_server.instrument.verification import objection
from reward_server.model import ErrorKind, Marker, Milestone
from reward_server.subprocess_pool import serve

if TYPE_CHECKING:
    from reward_server.subprocess_pool import Message

MEMORY_BYTES = 1 << 30
_STACK_BYTES = 128 << 20
_RUN_DEPTH = 1000
_FINDER_DEPTH = 30_000


def answer(question: Message, blob: bytes) -> Message:
    """Compile one program, then find or check its markers."""
    try:
        code = blob.decode()
        tree = _compile(code)
    except SyntaxError as error:
        return {"syntax_error": True, "line": error.lineno}
    except (ValueError, RecursionError, MemoryError, OverflowError):
        return {"syntax_error": True, "line": None}
    if question.get("view"):
        return {"markers": [], "text": without_comments(code)}
    if question.get("find"):
        return _found(code, tree)
    if "answer" in question:
        return _placed(question, code, tree)
    return _checked(code, [Marker(a, b, Milestone(m)) for a, b, m in question.get("markers", ())])


def _compile(code: str) -> ast.Module:
    sys.setrecursionlimit(_RUN_DEPTH)
    try:
        tree = ast.parse(code)
        compile(tree, "<program>", "exec", dont_inherit=True)
    finally:
        sys.setrecursionlimit(_FINDER_DEPTH)
    return tree


def _found(code: str, tree: ast.Module) -> Message:
    try:
        with boundary(ErrorKind.WORKER_LOST, "static finder"):
            return _checked(code, list(find_markers(tree)))
    except InfrastructureError as error:
        return {"markers": [], "reason": error.message}


def _placed(question: Message, code: str, tree: ast.Module) -> Message:
    try:
        with boundary(ErrorKind.WORKER_LOST, "placing"):
            mode = Mode(question["mode"])
            markers, reason = place(question["answer"], mode, code, tree, _compile)
    except InfrastructureError as error:
        return {"markers": [], "reason": error.message}
    return {"markers": _plain(markers), "reason": reason}


def _plain(markers: list[Marker]) -> list[list[int]]:
    return [[marker.line, marker.column, int(marker.milestone)] for marker in markers]


def _checked(code: str, markers: list[Marker]) -> Message:
    reason = objection(code, markers) if markers else None
    if reason is not None:
        return {"markers": [], "reason": reason}
    return {"markers": _plain(markers)}


def main() -> None:
    """Answer questions on a thread whose stack is deep enough for any tree that compiles."""
    warnings.simplefilter("ignore")
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=serve, args=(answer, MEMORY_BYTES))
    thread.start()
    thread.join()


if __name__ == "__main__":
    main()
