"""The values that pass between the stages of the pipeline, and their closed vocabularies.

Nothing here does work or knows a database, a sandbox or HTTP. When a value carries a `failure`, the
later stages have nothing to do and pass the failure on, so the pipeline has no branches.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


MOST_FETCHED = 64  # files read from one sandbox


class Blame(StrEnum):
    """Whose fault an error is."""

    PROGRAM = "program"
    INFRA = "infra"
    REQUEST = "request"


class ErrorKind(StrEnum):
    """Everything that can go wrong, in one closed list."""

    NO_CODE = "no_code"
    SYNTAX_ERROR = "syntax_error"
    NONZERO_EXIT = "nonzero_exit"
    TIMEOUT = "timeout"
    OOM = "oom"
    OUTPUT_LIMIT = "output_limit"
    DISK_LIMIT = "disk_limit"
    PIDS_LIMIT = "pids_limit"
    NO_SUBMISSION = "no_submission"
    INVALID_SUBMISSION = "invalid_submission"

    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    SANDBOX_LOST = "sandbox_lost"
    WORKER_LOST = "worker_lost"
    GRADER_ERROR = "grader_error"
    STORE_ERROR = "store_error"
    CANCELLED = "cancelled"

    UNAUTHORIZED = "unauthorized"
    INVALID_REQUEST = "invalid_request"
    UNKNOWN_TASK = "unknown_task"
    TOO_LARGE = "too_large"
    CONFLICT = "conflict"
    OVERLOADED = "overloaded"
    NOT_FOUND = "not_found"

    @property
    def blame(self) -> Blame:
        """Return whose fault an error of this kind is: the one place that decides it."""
        if self in _INFRA:
            return Blame.INFRA
        return Blame.REQUEST if self in _REQUEST else Blame.PROGRAM


_INFRA = frozenset(
    {
        ErrorKind.SANDBOX_UNAVAILABLE,
        ErrorKind.SANDBOX_LOST,
        ErrorKind.WORKER_LOST,
        ErrorKind.GRADER_ERROR,
        ErrorKind.STORE_ERROR,
        ErrorKind.CANCELLED,
    }
)
_REQUEST = frozenset(
    {
        ErrorKind.UNAUTHORIZED,
        ErrorKind.INVALID_REQUEST,
        ErrorKind.UNKNOWN_TASK,
        ErrorKind.TOO_LARGE,
        ErrorKind.CONFLICT,
        ErrorKind.OVERLOADED,
        ErrorKind.NOT_FOUND,
    }
)


class Milestone(IntEnum):
    """The steps of a solution that earn partial credit, in the order of the paper."""

    IMPORTED_PACKAGES = 1
    LOADED_DATA = 2
    DEFINED_MODEL = 3
    TRAINING_LOSS = 4
    TRAINED_MODEL = 5
    TESTING_LOSS = 6
    PREDICTED_TEST_LABELS = 7

    @property
    def label(self) -> str:
        """Return the words a person and the answer use for this step."""
        return self.name.lower().replace("_", " ")


class Priority(IntEnum):
    """Who goes first: evaluation, which a person waits for, before training."""

    TRAINING = 0
    EVALUATION = 1


class PromptKind(StrEnum):
    """What the prompt asked of the model."""

    SCRATCH = "scratch"
    IMPROVE = "improve"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a program failed; the text is fixed and quotes neither labels nor host paths."""

    kind: ErrorKind
    message: str


@dataclass(frozen=True, slots=True)
class Submission:
    """What a trainer sent: a whole completion or only its program, and where it belongs."""

    task_id: str
    completion: str | None = None
    code: str | None = None
    run_id: str = "default"
    step: int | None = None
    sample_id: str | None = None
    parent_id: str | None = None
    prompt_kind: PromptKind = PromptKind.SCRATCH
    wall_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program as the model wrote it, with the prose that came before it."""

    code: str
    plan: str = ""
    failure: Failure | None = None

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the code."""
        return hashlib.sha256(self.code.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Marker:
    """A milestone that the program reports right after the statement at this position.

    `line` counts from 1 and `column` from 0 in UTF-8 bytes, as in the syntax tree.
    """

    line: int
    column: int
    milestone: Milestone


@dataclass(frozen=True, slots=True)
class MarkerPlacementKey:
    """What a language model's answer depends on."""

    program_digest: str
    mode: str
    model: str
    prompt_version: int


@dataclass(frozen=True, slots=True)
class MarkerPlacement:
    """The valid markers of a language model's answer, and why there are no more."""

    markers: tuple[Marker, ...]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Instrumentation:
    """Who placed the markers, and whether the result was verified against the original."""

    kind: str
    model: str | None = None
    verified: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Instrumented:
    """The unchanged program and the positions at which it reports progress."""

    program: Program
    markers: tuple[Marker, ...]
    instrumentation: Instrumentation
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use."""

    wall_seconds: float
    memory_bytes: int
    disk_bytes: int
    processes: int
    open_files: int
    output_bytes: int
    artifact_bytes: int
    cores: int = 1
    stall_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AdHocProgram:
    """A program that belongs to no task, with its inputs and the files to return.

    `files` are in its work directory before it starts; `fetch` names the files that are read from
    there when it has ended. All names are relative and stay inside that directory.
    """

    code: str
    stdin: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    fetch: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """Which sandbox ran a program, and with which set of packages."""

    kind: str
    image: str


@dataclass(frozen=True, slots=True)
class Execution:
    """What the sandbox measured of one program, from its start to the end of its last process.

    `pressure` is the share of its time the program lost to others, if the kernel measures it;
    `contended` says that the duration is no longer the program's own. For an ad hoc program the
    tails hold the whole output, `files` what was fetched, and `refused` the names that exist but
    are no regular files of an allowed size.
    """

    box: Box
    failure: Failure | None
    milestones: tuple[Milestone, ...] = ()
    artifact: bytes | None = None
    exit_code: int | None = None
    queue_seconds: float = 0.0
    boot_seconds: float = 0.0
    duration_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    stdout_tail: str = ""
    stderr_tail: str = ""
    pressure: float | None = None
    contended: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grade:
    """The true score of a valid submission, or why there is none."""

    score: float | None
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Reward:
    """The number a trainer learns from, and the scheme and version that computed it."""

    value: float
    scheme: str
    version: int


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the seconds of one request went."""

    queue: float
    instrument: float
    boot: float
    execute: float
    grade: float
    total: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything the pipeline found out about one submission."""

    submission: Submission
    program: Program
    instrumentation: Instrumentation
    execution: Execution
    grade: Grade
    reward: Reward
    timings: Timings
    higher_is_better: bool
    data_digest: str
    medal: str | None
    reused_from: UUID | None = None
