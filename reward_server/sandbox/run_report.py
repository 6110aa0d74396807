"""What a supervisor observed of one run, and the execution that is built from it.

The report is the same for every sandbox: a slot supervisor fills it for bubblewrap boxes and
zygotes, the init of a container for docker (`inside/run_observation`). The server adds what only it
sees: the collected files, the output limit, the stall detector and the kernel's counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.model import Box, Execution
from reward_server.sandbox import blame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reward_server.sandbox.output import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run; times are monotonic nanoseconds, a negative exit code is a signal to the box.

    `interrupted` says that the server ended the run early. `artifact_status` and each of
    `file_statuses` is "file", "absent" or "refused"; the former also "not_requested".
    """

    launched: bool
    start_ns: int
    end_ns: int
    exit_code: int
    timed_out: bool = False
    interrupted: bool = False
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    oom_kills: int = 0
    processes_refused: int = 0
    disk_full: bool = False
    artifact_status: str = "absent"
    file_statuses: Sequence[str] = ()
    artifact: bytes | None = None
    file_contents: Sequence[bytes] = ()
    output_exceeded: bool = False
    stalled_seconds: float | None = None
    pressure: float | None = None


def build_execution(
    report: RunReport, box: Box, output: Output, file_names: Sequence[str], contended_above: float
) -> Execution:
    """Return the run as a value; the caller adds how long it waited and how long it booted."""
    statuses = list(zip(file_names, report.file_statuses, strict=False))  # none of a lost box
    found = [name for name, status in statuses if status == "file"]
    pressure = report.pressure
    return Execution(
        box=box,
        failure=blame.find_failure(report),
        milestones=output.milestones,
        artifact=report.artifact if report.artifact_status == "file" else None,
        exit_code=report.exit_code,
        duration_seconds=(report.end_ns - report.start_ns) / 1e9,
        cpu_seconds=report.cpu_seconds,
        peak_memory_bytes=report.peak_memory_bytes,
        stdout_tail=output.out.text(),
        stderr_tail=output.error_tail(),
        pressure=pressure,
        contended=pressure is not None and pressure > contended_above,
        files=dict(zip(found, report.file_contents, strict=False)),
        refused=tuple(name for name, status in statuses if status == "refused"),
    )
