"""From the values of the walk to rows of the tables, and back."""

from __future__ import annotations

import importlib.metadata
import re
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import UUID

from reward_server.errors import RequestError
from reward_server.model import (
    Box,
    ErrorKind,
    Execution,
    Failure,
    Grade,
    Instrumentation,
    Marker,
    MarkerPlacement,
    Milestone,
    PromptKind,
    Submission,
    Timings,
)
from reward_server.store.solutions.model_families import family_of
from reward_server.store.values import (
    JobRow,
    JobState,
    LeasedJob,
    StoredAnswer,
    StoredOutcome,
    StoredSummary,
)

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Row

    from reward_server.model import Verdict
    from reward_server.store.values import LeaseRequest, NewJob, OutcomeFilter

_VERSION = importlib.metadata.version("reward-server")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """Replace what Postgres cannot hold, NUL and lone surrogates, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _UNSTORABLE.sub("\ufffd", text)
    return text.replace("\x00", "\ufffd")


def storable_or_none(text: str | None) -> str | None:
    """Do the same for a text that may be absent."""
    return None if text is None else storable(text)


def parse_parent_id(parent_id: str | None) -> UUID | None:
    """Read the id of a solution as a client wrote it.

    Raises:
        RequestError: when it is not an id.
    """
    if parent_id is None:
        return None
    try:
        return UUID(parent_id)
    except ValueError:
        message = "parent_id is not the id of a solution"
        raise RequestError(ErrorKind.INVALID_REQUEST, message) from None


def order_parameters(order: NewJob, claim: LeaseRequest | None = None) -> dict[str, Any]:
    """Return the columns of a new row of `jobs`."""
    return _submission_parameters(order.submission) | {
        "idempotency_key": storable_or_none(order.idempotency_key),
        "body_digest": order.body_digest,
        "priority": order.priority.value,
        "client": storable(order.client),
        "budget_seconds": order.budget_seconds,
        "worker": None if claim is None else claim.worker,
        "lease_seconds": 0.0 if claim is None else claim.lease_seconds,
    }


def _submission_parameters(submission: Submission) -> dict[str, Any]:
    return {
        "task_id": storable(submission.task_id),
        "completion": storable_or_none(submission.completion),
        "code": storable_or_none(submission.code),
        "run_id": storable(submission.run_id),
        "step": submission.step,
        "sample_id": storable_or_none(submission.sample_id),
        "parent_id": parse_parent_id(submission.parent_id),
        "prompt_kind": submission.prompt_kind.value,
        "wall_seconds": submission.wall_seconds,
    }


def solution_parameters(verdict: Verdict) -> dict[str, Any]:
    """Return the columns of `solutions` that come from a verdict and not from its job."""
    execution, instrumentation = verdict.execution, verdict.instrumentation
    return _outcome(verdict) | {
        "code": storable(verdict.program.code),
        "plan": storable(verdict.program.plan),
        "program_digest": verdict.program.digest,
        "code_chars": len(verdict.program.code),
        "family": family_of(verdict.program.code),
        "higher_is_better": verdict.higher_is_better,
        "milestones": [milestone.value for milestone in execution.milestones],
        "duration_seconds": execution.duration_seconds,
        "cpu_seconds": execution.cpu_seconds,
        "peak_memory_bytes": execution.peak_memory_bytes,
        "stdout_tail": storable(execution.stdout_tail),
        "stderr_tail": storable(execution.stderr_tail),
        "instrumentation_kind": instrumentation.kind,
        "instrumentation_model": storable_or_none(instrumentation.model),
        "instrumentation_verified": instrumentation.verified,
        "instrumentation_reason": storable_or_none(instrumentation.reason),
        "sandbox_kind": execution.box.kind,
        "sandbox_image": execution.box.image,
        "exit_code": execution.exit_code,
        "pressure": execution.pressure,
        "contended": execution.contended,
        "reused_from": verdict.reused_from,
        "data_digest": verdict.data_digest,
        "medal": verdict.medal,
        "server_version": _VERSION,
    }


def _outcome(verdict: Verdict) -> dict[str, Any]:
    failure, timings = verdict.grade.failure, verdict.timings
    return {
        "status": (JobState.SCORED if failure is None else JobState.FAILED).value,
        "valid": failure is None,
        "reward": verdict.reward.value,
        "scheme": verdict.reward.scheme,
        "scheme_version": verdict.reward.version,
        "score": verdict.grade.score,
        "error_kind": None if failure is None else failure.kind.value,
        "error_message": None if failure is None else storable(failure.message),
        "queue_seconds": timings.queue,
        "instrument_seconds": timings.instrument,
        "boot_seconds": timings.boot,
        "execute_seconds": timings.execute,
        "grade_seconds": timings.grade,
        "total_seconds": timings.total,
    }


def failure_of(row: Row[Any]) -> Failure | None:
    """Read why a job or a solution has no score, if it has none."""
    if row.error_kind is None:
        return None
    return Failure(ErrorKind(row.error_kind), row.error_message or "")


def to_submission(row: Row[Any]) -> Submission:
    """Read what a trainer sent."""
    return Submission(
        task_id=row.task_id,
        completion=row.completion,
        code=row.code,
        run_id=row.run_id,
        step=row.step,
        sample_id=row.sample_id,
        parent_id=None if row.parent_id is None else str(row.parent_id),
        prompt_kind=PromptKind(row.prompt_kind),
        wall_seconds=row.wall_seconds,
    )


def to_claimed(row: Row[Any]) -> LeasedJob:
    """Read a job that was just lent to a worker."""
    return LeasedJob(
        job_id=row.id,
        attempt=row.attempt,
        submission=to_submission(row),
        waited_seconds=float(row.waited_seconds),
        left_seconds=float(row.left_seconds),
    )


def to_job(row: Row[Any]) -> JobRow:
    """Read a whole row of `jobs`."""
    return JobRow(
        job_id=row.id,
        idempotency_key=row.idempotency_key,
        body_digest=row.body_digest,
        submission=to_submission(row),
        state=JobState(row.state),
        attempt=row.attempt,
        faults=row.faults,
        error=failure_of(row),
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def _common(row: Row[Any]) -> dict[str, Any]:
    return {
        "solution_id": row.id,
        "job_id": row.job_id,
        "task_id": row.task_id,
        "run_id": row.run_id,
        "step": row.step,
        "sample_id": row.sample_id,
        "parent_id": row.parent_id,
        "prompt_kind": PromptKind(row.prompt_kind),
        "status": JobState(row.status),
        "reward": row.reward,
        "score": row.score,
        "higher_is_better": row.higher_is_better,
        "valid": row.valid,
        "milestones": tuple(map(Milestone, row.milestones)),
        "duration_seconds": row.duration_seconds,
        "cpu_seconds": row.cpu_seconds,
        "data_digest": row.data_digest,
        "scheme": row.scheme,
        "scheme_version": row.scheme_version,
        "medal": row.medal,
        "created_at": row.created_at,
    }


def to_summary(row: Row[Any]) -> StoredSummary:
    """Read the columns of `solutions` that a list shows."""
    return StoredSummary(**_common(row), error_kind=row.error_kind)


def to_answer(row: Row[Any]) -> StoredAnswer:
    """Read a whole row of `solutions`."""
    return StoredAnswer(
        **_common(row),
        code=row.code,
        plan=row.plan,
        program_digest=row.program_digest,
        failure=failure_of(row),
        timings=_timings(row),
        peak_memory_bytes=row.peak_memory_bytes,
        stdout_tail=row.stdout_tail,
        stderr_tail=row.stderr_tail,
        instrumentation=_instrumentation(row),
        sandbox=Box(row.sandbox_kind, row.sandbox_image),
        exit_code=row.exit_code,
        pressure=row.pressure,
        contended=row.contended,
        reused_from=row.reused_from,
        attempt=row.attempt,
    )


def outcome_parameters(wanted: OutcomeFilter) -> dict[str, Any]:
    """Return the parameters that choose outcomes."""
    return {
        "task_id": storable_or_none(wanted.task_id),
        "run_id": storable_or_none(wanted.run_id),
    }


def to_outcome(row: Row[Any]) -> StoredOutcome:
    """Read the columns of `solutions` that a reward is made of."""
    failure = failure_of(row)
    execution = Execution(
        box=Box(row.sandbox_kind, row.sandbox_image),
        failure=failure,
        milestones=tuple(map(Milestone, row.milestones)),
        duration_seconds=row.duration_seconds,
        cpu_seconds=row.cpu_seconds,
    )
    return StoredOutcome(
        solution_id=row.id,
        created_at=row.created_at,
        task_id=row.task_id,
        reward=row.reward,
        higher_is_better=row.higher_is_better,
        data_digest=row.data_digest,
        execution=execution,
        grade=Grade(row.score, failure),
    )


def answer_of(
    verdict: Verdict, job_id: UUID, attempt: int, solution_id: UUID, created_at: datetime
) -> StoredAnswer:
    """Return what `to_answer` would read back of a verdict that was just stored."""
    submission, execution, failure = verdict.submission, verdict.execution, verdict.grade.failure
    return StoredAnswer(
        job_id=job_id,
        solution_id=solution_id,
        task_id=storable(submission.task_id),
        run_id=storable(submission.run_id),
        step=submission.step,
        sample_id=storable_or_none(submission.sample_id),
        parent_id=parse_parent_id(submission.parent_id),
        prompt_kind=submission.prompt_kind,
        code=storable(verdict.program.code),
        plan=storable(verdict.program.plan),
        program_digest=verdict.program.digest,
        status=JobState.SCORED if failure is None else JobState.FAILED,
        reward=verdict.reward.value,
        score=verdict.grade.score,
        higher_is_better=verdict.higher_is_better,
        valid=failure is None,
        failure=failure,
        milestones=execution.milestones,
        duration_seconds=execution.duration_seconds,
        cpu_seconds=execution.cpu_seconds,
        timings=verdict.timings,
        peak_memory_bytes=execution.peak_memory_bytes,
        stdout_tail=storable(execution.stdout_tail),
        stderr_tail=storable(execution.stderr_tail),
        instrumentation=verdict.instrumentation,
        sandbox=execution.box,
        exit_code=execution.exit_code,
        pressure=execution.pressure,
        contended=execution.contended,
        reused_from=verdict.reused_from,
        data_digest=verdict.data_digest,
        scheme=verdict.reward.scheme,
        scheme_version=verdict.reward.version,
        attempt=attempt,
        medal=verdict.medal,
        created_at=created_at,
    )


def _timings(row: Row[Any]) -> Timings:
    return Timings(
        queue=row.queue_seconds,
        instrument=row.instrument_seconds,
        boot=row.boot_seconds,
        execute=row.execute_seconds,
        grade=row.grade_seconds,
        total=row.total_seconds,
    )


def _instrumentation(row: Row[Any]) -> Instrumentation:
    return Instrumentation(
        kind=row.instrumentation_kind,
        model=row.instrumentation_model,
        verified=row.instrumentation_verified,
        reason=row.instrumentation_reason,
    )


def placement_parameters(placement: MarkerPlacement) -> dict[str, Any]:
    """Return the columns of `placements` that are not its key."""
    places = [(m.line, m.column, m.milestone.value) for m in placement.markers]
    return {"places": list(chain.from_iterable(places)), "reason": placement.reason}


def to_placement(row: Row[Any]) -> MarkerPlacement:
    """Read a row of `placements`."""
    numbers = iter(row.places)
    triples = zip(numbers, numbers, numbers, strict=True)
    markers = tuple(Marker(line, column, Milestone(m)) for line, column, m in triples)
    return MarkerPlacement(markers, row.reason)
