"""Whose fault the end of a run was, decided in one place from what the host saw.

Limits count against a program only when it did not finish cleanly: a worker process that
ran out of memory and was survived by its parent is no failure.
"""

from __future__ import annotations

from dataclasses import dataclass

from reward_server.model import ErrorKind, Failure

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


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """What the host saw of a finished run."""

    exit_code: int
    timed_out: bool
    output_exceeded: bool
    oom_kills: int
    processes_refused: int
    disk_full: bool
    artifact: str
    stalled_seconds: float | None = None


def judge(evidence: RunEvidence) -> Failure | None:
    """Return the first failure that applies, in the order of the agreement, or none."""
    kind = _kind(evidence)
    if kind is None:
        return None
    if kind is ErrorKind.TIMEOUT and evidence.stalled_seconds is not None:
        text = f"the program made no progress for {evidence.stalled_seconds:g} seconds"
        return Failure(kind, text)
    return Failure(kind, _TEXTS[kind])


def _kind(evidence: RunEvidence) -> ErrorKind | None:
    out_of_time = evidence.timed_out or evidence.stalled_seconds is not None
    is_clean = evidence.exit_code == 0 and not out_of_time and not evidence.output_exceeded
    if is_clean:
        return _artifact_kind(evidence.artifact)
    checks = (
        (evidence.oom_kills > 0, ErrorKind.OOM),
        (evidence.disk_full, ErrorKind.DISK_LIMIT),
        (evidence.processes_refused > 0, ErrorKind.PIDS_LIMIT),
        (evidence.output_exceeded, ErrorKind.OUTPUT_LIMIT),
        (out_of_time, ErrorKind.TIMEOUT),
    )
    return next((kind for applies, kind in checks if applies), ErrorKind.NONZERO_EXIT)


def _artifact_kind(artifact: str) -> ErrorKind | None:
    if artifact == "absent":
        return ErrorKind.NO_SUBMISSION
    return None if artifact in ("file", "unasked") else ErrorKind.INVALID_SUBMISSION
