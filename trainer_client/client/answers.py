"""The server's answers as frozen values. Every number is checked to be finite."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from trainer_client.client.errors import ErrorDetails, InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_client.client.errors import SampleLostError

JsonObject = dict[str, Any]
BAD_ANSWER: Final = "bad_answer"
_Part = TypeVar("_Part", "AnswerFailure", "AnswerTimings", "InstrumentationInfo", "SandboxInfo")


@dataclass(frozen=True, slots=True)
class AnswerFailure:
    """How the program failed."""

    kind: str
    blame: str
    message: str


@dataclass(frozen=True, slots=True)
class AnswerTimings:
    """How many seconds each stage took."""

    queue: float
    instrument: float
    boot: float
    execute: float
    grade: float
    total: float


@dataclass(frozen=True, slots=True)
class InstrumentationInfo:
    """Who placed the milestone markers."""

    kind: str
    model: str | None
    verified: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """Where the program ran. If `contended`, other programs influenced its duration."""

    kind: str
    image: str
    contended: bool
    reused: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """A reward and its details. `raw` is the whole response, with unknown keys."""

    job_id: str
    solution_id: str
    task_id: str
    run_id: str
    status: str
    reward: float
    score: float | None
    higher_is_better: bool
    valid: bool
    error: AnswerFailure | None
    milestones: tuple[str, ...]
    duration_seconds: float
    cpu_seconds: float
    timings: AnswerTimings
    peak_memory_bytes: int
    stdout_tail: str
    stderr_tail: str
    instrumentation: InstrumentationInfo
    sandbox: SandboxInfo
    data_digest: str
    scheme: str
    attempt: int
    medal: str | None
    raw: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one of many submissions: exactly one of `answer` and `error` is set."""

    index: int
    answer: Answer | None
    error: SampleLostError | None


def read_answer(raw: object) -> Answer:
    """Parse an answer of the server.

    Raises:
        InfrastructureError: `bad_answer`, if a key is missing or a number is not finite.
    """
    if not isinstance(raw, dict):
        message = "the answer is not an object"
        raise bad_answer(message)
    try:
        return _build(raw)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        message = f"the answer cannot be used: {type(error).__name__}: {error}"
        raise bad_answer(message, _job_id(raw)) from error


def bad_answer(message: str, job_id: str | None = None) -> InfrastructureError:
    """Return the error for a malformed response."""
    return InfrastructureError(message, ErrorDetails(kind=BAD_ANSWER, job_id=job_id))


def _build(raw: JsonObject) -> Answer:
    plain = {one.name: raw[one.name] for one in fields(Answer) if one.name != "raw"}
    special: JsonObject = {
        "reward": _finite(raw["reward"]),
        "score": None if raw["score"] is None else _finite(raw["score"]),
        "duration_seconds": _finite(raw["duration_seconds"]),
        "cpu_seconds": _finite(raw["cpu_seconds"]),
        "error": None if raw["error"] is None else _part(AnswerFailure, raw["error"]),
        "milestones": tuple(raw["milestones"]),
        "timings": _part(AnswerTimings, raw["timings"]),
        "instrumentation": _part(InstrumentationInfo, raw["instrumentation"]),
        "sandbox": _part(SandboxInfo, raw["sandbox"]),
    }
    return Answer(**plain | special, raw=raw)


def _part(kind: type[_Part], raw: JsonObject) -> _Part:
    return kind(**{one.name: raw[one.name] for one in fields(kind)})


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        message = f"{value!r} is not a finite number"
        raise ValueError(message)
    return float(value)


def _job_id(raw: JsonObject) -> str | None:
    found = raw.get("job_id")
    return found if isinstance(found, str) else None
