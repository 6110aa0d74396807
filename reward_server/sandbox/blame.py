"""Whose fault the end of a run is: every such decision, for every sandbox.

`raise_if_sandbox_failed` finds the sandbox's faults, `find_failure` the program's, and
`explains_missing_report` decides about runs whose supervisor died with its program. Limits count
against a program only when it did not finish cleanly: a worker process that ran out of memory and
whose parent survived it is no failure.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind, Failure

if TYPE_CHECKING:
    from reward_server.sandbox.run_report import RunReport

log = logging.getLogger(__name__)

_TEXTS = {
    ErrorKind.OOM: "the program used more memory than the task allows",
    ErrorKind.DISK_LIMIT: "the program filled its work directory",
    ErrorKind.PIDS_LIMIT: "the program started more processes than the task allows",
    ErrorKind.OUTPUT_LIMIT: "the program printed more than the task allows",
    ErrorKind.TIMEOUT: "the program did not finish within its time limit",
    ErrorKind.NONZERO_EXIT: "the program ended with an error",
    ErrorKind.NO_SUBMISSION: "the program left no submission.csv in its work directory",
    ErrorKind.INVALID_SUBMISSION: "submission.csv is not a regular file of an allowed size",
}


def find_failure(report: RunReport) -> Failure | None:
    """Return the first failure of the program that applies, in the documented order, or None."""
    kind = _find_kind(report)
    if kind is None:
        return None
    if kind is ErrorKind.TIMEOUT and report.stalled_seconds is not None:
        text = f"the program made no progress for {report.stalled_seconds:g} seconds"
        return Failure(kind, text)
    return Failure(kind, _TEXTS[kind])


def _find_kind(report: RunReport) -> ErrorKind | None:
    out_of_time = report.timed_out or report.stalled_seconds is not None
    is_clean = report.exit_code == 0 and not out_of_time and not report.output_exceeded
    if is_clean:
        return _find_artifact_kind(report.artifact_status)
    checks = (
        (report.oom_kills > 0, ErrorKind.OOM),
        (report.disk_full, ErrorKind.DISK_LIMIT),
        (report.processes_refused > 0, ErrorKind.PIDS_LIMIT),
        (report.output_exceeded, ErrorKind.OUTPUT_LIMIT),
        (out_of_time, ErrorKind.TIMEOUT),
    )
    return next((kind for applies, kind in checks if applies), ErrorKind.NONZERO_EXIT)


def _find_artifact_kind(artifact_status: str) -> ErrorKind | None:
    if artifact_status == "absent":
        return ErrorKind.NO_SUBMISSION
    return None if artifact_status in {"file", "not_requested"} else ErrorKind.INVALID_SUBMISSION


def raise_if_sandbox_failed(report: RunReport, stderr: str) -> None:
    """Raise where the host, not the program, ended the run.

    Raises:
        InfrastructureError: `sandbox_unavailable` when the box did not start, `sandbox_lost` when
            it was killed and neither a limit nor the server explains that.
    """
    if not report.launched:
        log.error("a box did not start (exit code %s): %s", report.exit_code, stderr)
        message = "the box could not be started"
        raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)
    ended_by_server = report.output_exceeded or report.stalled_seconds is not None
    is_explained = ended_by_server or report.timed_out or report.oom_kills > 0
    if report.exit_code < 0 and not is_explained:
        log.error("a box was killed from outside (exit code %s)", report.exit_code)
        message = "the sandbox was lost while the program ran"
        raise InfrastructureError(ErrorKind.SANDBOX_LOST, message)


def explains_missing_report(*, out_of_memory: bool, ended_by_server: bool = False) -> bool:
    """Tell whether the program is to blame for a supervisor that died without a report.

    Supervisor and program share a memory limit, so the kernel may kill both; that is the program's
    doing. An exit code is no evidence: 137 is any SIGKILL, also one of an operator.
    """
    return out_of_memory or ended_by_server
