"""What is told of a finished run, put together in one way for every kind of box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.model import Box, Execution
from reward_server.sandbox.blame import RunEvidence, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.sandbox.output import Output


@dataclass(frozen=True, slots=True)
class RunReport:
    """What the witness in or around the box saw of one run; times are its own clock's."""

    launched: bool
    start_ns: int
    end_ns: int
    status: int
    timed_out: bool
    killed: bool
    cpu_seconds: float
    peak_memory_bytes: int
    disk_full: bool
    artifact: str
    oom_kills: int
    processes_refused: int
    fetched: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What a dead box has left: the submission, and what there is of the files asked for."""

    artifact: bytes | None = None
    files: Sequence[bytes] = ()
    asked: Sequence[str] = ()


def build_execution(
    box: Box, told: RunReport, output: Output, left: LeftBehind, stalled_seconds: float | None
) -> Execution:
    """Return the run as a value; what it waited for and who disturbed it is added by others."""
    outcomes = list(zip(left.asked, told.fetched, strict=False))  # a lost box tells of none
    found = [name for name, outcome in outcomes if outcome == "file"]
    evidence = RunEvidence(
        exit_code=told.status,
        timed_out=told.timed_out,
        output_exceeded=output.exceeded,
        oom_kills=told.oom_kills,
        processes_refused=told.processes_refused,
        disk_full=told.disk_full,
        artifact=told.artifact,
        stalled_seconds=stalled_seconds,
    )
    return Execution(
        box=box,
        failure=judge(evidence),
        milestones=output.milestones,
        artifact=left.artifact if told.artifact == "file" else None,
        exit_code=told.status,
        duration_seconds=(told.end_ns - told.start_ns) / 1e9,
        cpu_seconds=told.cpu_seconds,
        peak_memory_bytes=told.peak_memory_bytes,
        stdout_tail=output.out.text(),
        stderr_tail=output.error_tail(),
        files=dict(zip(found, left.files, strict=False)),
        refused=tuple(name for name, outcome in outcomes if outcome == "refused"),
    )
