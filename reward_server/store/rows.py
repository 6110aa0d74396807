"""Conversion between the values of the pipeline and rows of the tables.

Both directions follow the fields of the dataclasses: `_PATHS` is the only list of columns.
"""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import fields
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar
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
    Program,
    PromptKind,
    Reward,
    Submission,
    Timings,
    Verdict,
)
from reward_server.store.solutions.model_families import family_of
from reward_server.store.values import (
    JobRow,
    JobState,
    LeasedJob,
    StoredAnswer,
    StoredOutcome,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import DataclassInstance
    from sqlalchemy import Row

    from reward_server.store.values import LeaseRequest, NewJob, OutcomeFilter

_VERSION = importlib.metadata.version("reward-server")
_Value = TypeVar("_Value", bound="DataclassInstance")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """Replace what Postgres cannot hold, NUL and lone surrogates, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _UNSTORABLE.sub("\ufffd", text)
    return text.replace("\x00", "\ufffd")


def storable_or_none(text: str | None) -> str | None:
    """Return a storable text, or None without one."""
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
    columns = {one.name: _to_column(getattr(submission, one.name)) for one in fields(submission)}
    return columns | {"parent_id": parse_parent_id(submission.parent_id)}


def _to_column(value: object) -> object:
    match value:
        case Enum():
            return value.value
        case str():
            return storable(value)
        case tuple():
            return [_to_column(one) for one in value]
        case _:
            return value


def _names(kind: type[DataclassInstance], *others: str) -> list[str]:
    return [one.name for one in fields(kind) if one.name not in others]


# The column of each field of a verdict. A field that is added to `Execution` or `Verdict` is stored
# in the column of the same name; only parts and renamed columns are listed here. Later entries win:
# `queue_seconds` and `boot_seconds` are those of `timings`.
_PATHS = {
    **{
        name: f"execution.{name}"
        for name in _names(Execution, "box", "failure", "artifact", "files", "refused")
    },
    **{f"{name}_seconds": f"timings.{name}" for name in _names(Timings)},
    **{f"instrumentation_{name}": f"instrumentation.{name}" for name in _names(Instrumentation)},
    **{f"sandbox_{name}": f"execution.box.{name}" for name in _names(Box)},
    **{
        name: name
        for name in _names(
            Verdict,
            *("submission", "program", "instrumentation", "execution"),
            *("grade", "reward", "timings"),
        )
    },
    "code": "program.code",
    "plan": "program.plan",
    "program_digest": "program.digest",
    "reward": "reward.value",
    "scheme": "reward.scheme",
    "scheme_version": "reward.version",
    "score": "grade.score",
    "error_kind": "grade.failure.kind",
    "error_message": "grade.failure.message",
}


def solution_parameters(verdict: Verdict) -> dict[str, Any]:
    """Return the columns of `solutions` that come from a verdict and not from its job."""
    columns = {column: _to_column(_follow(verdict, path)) for column, path in _PATHS.items()}
    failure, code = verdict.grade.failure, verdict.program.code
    return columns | {
        "status": (JobState.SCORED if failure is None else JobState.FAILED).value,
        "valid": failure is None,
        "code_chars": len(code),
        "family": family_of(code),
        "server_version": _VERSION,
    }


def _follow(value: object, path: str) -> object:
    for name in path.split("."):
        if value is None:
            return None
        value = getattr(value, name)
    return value


def failure_of(row: Row[Any]) -> Failure | None:
    """Read why a job or a solution has no score, if it has none."""
    return _failure(row._asdict())


def _failure(columns: Mapping[str, Any]) -> Failure | None:
    kind = columns["error_kind"]
    return None if kind is None else Failure(ErrorKind(kind), columns["error_message"] or "")


def to_submission(row: Row[Any]) -> Submission:
    """Read what a trainer sent."""
    parent_id = None if row.parent_id is None else str(row.parent_id)
    return read(Submission, row, parent_id=parent_id)


def to_claimed(row: Row[Any]) -> LeasedJob:
    """Read a job that a worker has just leased."""
    return LeasedJob(
        job_id=row.id,
        attempt=row.attempt,
        submission=to_submission(row),
        waited_seconds=float(row.waited_seconds),
        left_seconds=float(row.left_seconds),
    )


def to_job(row: Row[Any]) -> JobRow:
    """Read a whole row of `jobs`."""
    submission, error = to_submission(row), failure_of(row)
    return read(JobRow, row, job_id=row.id, submission=submission, error=error)


def read(kind: type[_Value], row: Row[Any], **given: object) -> _Value:
    """Return a dataclass whose fields are columns of a row, except those that are given."""
    columns = row._asdict()
    return kind(**given, **{n: _from_column(n, columns[n]) for n in _names(kind, *given)})


def _from_column(name: str, value: Any) -> object:  # noqa: ANN401 - as the driver returns it
    match name:
        case "milestones":
            return tuple(map(Milestone, value))
        case "prompt_kind":
            return PromptKind(value)
        case "status" | "state":
            return JobState(value)
        case _:
            return value


def to_answer(columns: Mapping[str, Any]) -> StoredAnswer:
    """Return the answer in the columns of a row of `solutions`."""
    failure = _failure(columns)
    parent_id = columns["parent_id"]
    return StoredAnswer(
        job_id=columns["job_id"],
        solution_id=columns["id"],
        attempt=columns["attempt"],
        created_at=columns["created_at"],
        program_digest=columns["program_digest"],
        submission=Submission(
            parent_id=None if parent_id is None else str(parent_id),
            prompt_kind=PromptKind(columns["prompt_kind"]),
            **{name: columns[name] for name in ("task_id", "run_id", "step", "sample_id")},
        ),
        program=Program(columns["code"], columns["plan"]),
        instrumentation=Instrumentation(**_part("instrumentation", columns)),
        execution=_execution(columns),
        grade=Grade(columns["score"], failure),
        reward=Reward(**_part("reward", columns)),
        timings=Timings(**_part("timings", columns)),
        **_part("", columns),
    )


def _part(part: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of one part of a verdict, as far as their columns were read."""
    found = {}
    for column, path in _PATHS.items():
        owner, _, name = path.rpartition(".")
        if owner == part and column in columns:
            found[name] = _from_column(column, columns[column])
    return found


def _execution(columns: Mapping[str, Any]) -> Execution:
    return Execution(
        box=Box(**_part("execution.box", columns)),
        failure=_failure(columns),
        **_part("execution", columns),
    )


def outcome_parameters(wanted: OutcomeFilter) -> dict[str, Any]:
    """Return the parameters of a query for outcomes."""
    return {
        "task_id": storable_or_none(wanted.task_id),
        "run_id": storable_or_none(wanted.run_id),
    }


def to_outcome(row: Row[Any]) -> StoredOutcome:
    """Read the columns of `solutions` that a reward is made of."""
    columns = row._asdict()
    execution = _execution(columns)
    grade = Grade(row.score, execution.failure)
    return read(StoredOutcome, row, solution_id=row.id, execution=execution, grade=grade)


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
