"""Preparing many tasks at once, each in a process of its own, as many as there are cores.

The processes are forked from one that has imported what all of them need. One that fails ends
alone; when the caller is interrupted, all of them remove what they have begun.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from reward_server.errors import ServiceError
from reward_server.tasks.preparation.prepare import prepare_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path
    from types import FrameType

    from reward_server.tasks.base import TwinSize
    from reward_server.tasks.preparation.steps import PreparationStep, Report

_OURS = "reward_server."
# Every child imports these late, for the score of the sample submission.
_LATE_IMPORTS = ("reward_server.tasks.sdk.submission_table", "reward_server.tasks.sdk.metrics")
_CLEANUP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class PreparationFailure:
    """Why a task could not be prepared."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Worker:
    task_id: str
    process: ForkServerProcess
    messages: Connection


def prepare_twins(
    folders: Mapping[str, Path], data_dir: Path, size: TwinSize, report: Report
) -> tuple[PreparationFailure, ...]:
    """Prepare a twin of every task, and return those that failed."""
    context = multiprocessing.get_context("forkserver")
    # Each child runs the main module of the caller again, so preload what that imports.
    ours = [name for name in sys.modules if name.startswith(_OURS)]
    context.set_forkserver_preload([*ours, *_LATE_IMPORTS])
    waiting = list(folders.items())
    working: list[_Worker] = []
    failures: list[PreparationFailure] = []
    try:
        while waiting or working:
            while waiting and len(working) < len(os.sched_getaffinity(0)):
                task_id, folder = waiting.pop(0)
                working.append(_start(context.Process, task_id, folder, data_dir, size))
            for worker in _with_messages(working):
                failure = _receive(worker, report)
                if not worker.messages.closed:
                    continue
                working.remove(worker)
                failures += [] if failure is None else [failure]
    finally:
        _stop(working)
    return tuple(failures)


def _start(
    process: Callable[..., ForkServerProcess],
    task_id: str,
    folder: Path,
    data_dir: Path,
    size: TwinSize,
) -> _Worker:
    messages, sender = multiprocessing.Pipe(duplex=False)
    child = process(target=_work, args=(folder, data_dir, size, sender), daemon=True)
    child.start()
    sender.close()
    return _Worker(task_id, child, messages)


def _with_messages(working: list[_Worker]) -> Iterator[_Worker]:
    ready = wait([worker.messages for worker in working])
    return (worker for worker in tuple(working) if worker.messages in ready)


def _receive(worker: _Worker, report: Report) -> PreparationFailure | None:
    """Report one step of a worker; when its messages end, the worker has ended."""
    try:
        step: PreparationStep | str = worker.messages.recv()
    except EOFError:
        worker.messages.close()
        worker.process.join()
        code = worker.process.exitcode
        return (
            PreparationFailure(worker.task_id, f"its process ended with {code}") if code else None
        )
    if not isinstance(step, str):
        report(step)
        return None
    worker.messages.close()
    worker.process.join()
    return PreparationFailure(worker.task_id, step)


def _stop(working: list[_Worker]) -> None:
    for worker in working:
        worker.process.terminate()
    for worker in working:
        worker.process.join(_CLEANUP_SECONDS)
        worker.process.kill()
        worker.process.join()


def _work(folder: Path, data_dir: Path, size: TwinSize, sender: Connection) -> None:
    """Prepare one task; a signal to end is an exception, so that nothing stays half-made."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides, and terminates
    signal.signal(signal.SIGTERM, _leave)
    try:
        prepare_task(folder, data_dir, size=size, progress=sender.send)
    except ServiceError as error:
        with contextlib.suppress(BrokenPipeError):
            sender.send(str(error))


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    sys.exit(128 + number)
