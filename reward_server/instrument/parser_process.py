"""The parsing child: the only process in which a program's text meets the Python parser.

A request holds the code as a blob and what to do besides compiling it: `find` markers, check
the `markers` given, strip its comments (`strip_comments`), or read the markers out of a language
model's `reply`. The response is `syntax_error` with a line, or the markers that passed
verification and, if they did not, the reason. If the analyzer fails, or a reply cannot be read,
the program loses its markers and still runs.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, boundary
from reward_server.instrument.lm.prompts import Mode, without_comments
from reward_server.instrument.lm.reply_markers import read_markers
from reward_server.instrument.static.analyzer import find_markers
from reward_server.instrument.verification import find_objection
from reward_server.model import ErrorKind, Marker, Milestone
from reward_server.subprocess_pool import serve

if TYPE_CHECKING:
    from reward_server.subprocess_pool import Message

MEMORY_BYTES = 1 << 30
_STACK_BYTES = 128 << 20
# A program must compile at the depth it will run at; the analyzer may recurse much deeper.
_RUN_DEPTH = 1000
_ANALYZER_DEPTH = 30_000


def answer(request: Message, blob: bytes) -> Message:
    """Compile one program, then find or check its markers."""
    try:
        code = blob.decode()
        tree = _compile(code)
    except SyntaxError as error:
        return {"syntax_error": True, "line": error.lineno}
    except (ValueError, RecursionError, MemoryError, OverflowError):
        return {"syntax_error": True, "line": None}
    if request.get("strip_comments"):
        return {"markers": [], "text": without_comments(code)}
    if request.get("find"):
        return _find(code, tree)
    if "reply" in request:
        return _read_reply(request, code, tree)
    return _check(code, [Marker(a, b, Milestone(m)) for a, b, m in request.get("markers", ())])


def _compile(code: str) -> ast.Module:
    sys.setrecursionlimit(_RUN_DEPTH)
    try:
        tree = ast.parse(code)
        compile(tree, "<program>", "exec", dont_inherit=True)
    finally:
        sys.setrecursionlimit(_ANALYZER_DEPTH)
    return tree


def _find(code: str, tree: ast.Module) -> Message:
    try:
        with boundary(ErrorKind.WORKER_LOST, "static analyzer"):
            return _check(code, list(find_markers(tree)))
    except InfrastructureError as error:
        return {"markers": [], "reason": error.message}


def _read_reply(request: Message, code: str, tree: ast.Module) -> Message:
    try:
        with boundary(ErrorKind.WORKER_LOST, "placing"):
            mode = Mode(request["mode"])
            markers, reason = read_markers(request["reply"], mode, code, tree, _compile)
    except InfrastructureError as error:
        return {"markers": [], "reason": error.message}
    return {"markers": _to_json(markers), "reason": reason}


def _to_json(markers: list[Marker]) -> list[list[int]]:
    return [[marker.line, marker.column, int(marker.milestone)] for marker in markers]


def _check(code: str, markers: list[Marker]) -> Message:
    reason = find_objection(code, markers) if markers else None
    if reason is not None:
        return {"markers": [], "reason": reason}
    return {"markers": _to_json(markers)}


def main() -> None:
    """Serve requests on a thread whose stack is deep enough for any tree that compiles."""
    warnings.simplefilter("ignore")
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=serve, args=(answer, MEMORY_BYTES))
    thread.start()
    thread.join()


if __name__ == "__main__":
    main()
