"""The grading process: it imports the numerical libraries once and forks for every question.

A fork has its own limits, cannot write a file, is connected to the server by one pipe only, and
dies with its parent. It writes each phase to that pipe before it begins, so that the parent
knows in which phase the fork died, and thereby whose fault it was.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from reward_server import subprocess_pool

if TYPE_CHECKING:
    from types import ModuleType

_OWN_MEMORY_BYTES = 16 << 30
_ANSWER_BYTES = 1 << 16
_DETAIL_CHARACTERS = 600  # small enough for the answer to be one atomic write
_PR_SET_PDEATHSIG = 1
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    """Preload, then answer questions until standard input closes."""
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    scoring = importlib.import_module("reward_server.grade.scoring")
    scoring.warm_up()
    gc.collect()
    gc.freeze()
    subprocess_pool.serve(
        lambda question, blob: _answer(scoring, question, blob), _OWN_MEMORY_BYTES
    )


def _answer(
    scoring: ModuleType, question: subprocess_pool.Message, blob: bytes
) -> subprocess_pool.Message:
    """Grade in a fork; if its crash may be the grader's fault, grade a control in another."""
    began = time.monotonic()
    answer = _ask_fork(scoring, question, blob)
    if answer["outcome"] != "doubt":
        return answer
    left = question["wall_seconds"] - (time.monotonic() - began)
    control = _ask_fork(scoring, {**question, "wall_seconds": left}, None)
    if control["outcome"] == "passed":
        return {"outcome": "invalid"}
    detail = f"{answer['detail']}\nand on the control: {control.get('detail')}"
    return {"outcome": "error", "detail": detail}


def _ask_fork(
    scoring: ModuleType, question: subprocess_pool.Message, blob: bytes | None
) -> subprocess_pool.Message:
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _run_fork(scoring, question, blob, writing, parent)
    os.close(writing)
    try:
        output, in_time = _read_lines(reading, question["wall_seconds"])
    finally:
        os.close(reading)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return _interpret(output, status, in_time=in_time)


def _read_lines(reading: int, wall_seconds: float) -> tuple[list[str], bool]:
    """Return the lines that a fork writes until it ends, and whether it ended in time."""
    deadline = time.monotonic() + wall_seconds
    output = b""
    while len(output) < _ANSWER_BYTES:
        remaining = deadline - time.monotonic()
        ready, _, _ = select.select([reading], [], [], max(0.0, remaining))
        if not ready:
            return output.decode().splitlines(), False
        chunk = os.read(reading, _ANSWER_BYTES)
        if not chunk:
            break
        output += chunk
    return output.decode().splitlines(), True


def _interpret(output: list[str], status: int, *, in_time: bool) -> subprocess_pool.Message:
    last = output[-1] if output else "start"
    if last.startswith("{"):
        answer: subprocess_pool.Message = json.loads(last)
        return answer
    if last == "submission" and in_time:
        return {"outcome": "invalid"}
    reason = f"wait status {status}" if in_time else "out of time"
    outcome = "doubt" if last == "grader" and in_time else "error"
    return {"outcome": outcome, "detail": f"grading ended in phase {last}: {reason}"}


def _run_fork(
    scoring: ModuleType,
    question: subprocess_pool.Message,
    blob: bytes | None,
    writing: int,
    parent: int,
) -> NoReturn:
    gc.disable()
    try:
        _confine(question, parent)
        folder, answers = Path(question["folder"]), Path(question["answers"])
        if blob is None:
            answer = scoring.score_control(folder, answers)
        else:
            file_bytes = question["file_bytes"]
            enter = functools.partial(_write_line, writing)
            answer = scoring.score_submission(folder, answers, blob, file_bytes, enter)
        _write_line(writing, json.dumps(answer))
    except BaseException:  # noqa: BLE001 -- the fork must never return into its parent's loop
        detail = traceback.format_exc()[-_DETAIL_CHARACTERS:]
        _write_line(writing, json.dumps({"outcome": "error", "detail": detail}))
    finally:
        os._exit(0)


def _confine(question: subprocess_pool.Message, parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    _limit(resource.RLIMIT_AS, question["memory_bytes"])
    _limit(resource.RLIMIT_CPU, question["cpu_seconds"])
    _limit(resource.RLIMIT_FSIZE, 0)


def _limit(kind: int, amount: int) -> None:
    resource.setrlimit(kind, (amount, amount))


def _write_line(writing: int, line: str) -> None:
    os.write(writing, line.encode() + b"\n")


if __name__ == "__main__":
    main()
