"""Responses: the published contract of the server, documented by these models."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, Self
from uuid import UUID

from pydantic import BeforeValidator

from reward_server.api.problems import is_retryable
from reward_server.api.schemas.derived import Out, publishes
from reward_server.model import (
    Blame,
    ErrorKind,
    Execution,
    Instrumentation,
    Milestone,
    Timings,
    Verdict,
)
from reward_server.store.values import KeptReward, Relative, StoredSummary
from reward_server.tasks.leaderboards import LeaderboardStanding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reward_server.model import Failure
    from reward_server.store.values import SolutionDetail, StoredAnswer
    from reward_server.tasks.base import Task


def _labels(milestones: Iterable[Milestone | str]) -> list[str]:
    return [one.label if isinstance(one, Milestone) else one for one in milestones]


_Labels = Annotated[list[str], BeforeValidator(_labels)]


class ErrorOut(Out):
    """How the program failed."""

    kind: ErrorKind
    blame: Blame
    message: str

    @classmethod
    def of(cls, failure: Failure | None) -> Self | None:
        """Return the failure of a program, if there is one."""
        if failure is None:
            return None
        return cls(kind=failure.kind, blame=failure.kind.blame, message=failure.message)


@publishes(Timings)
class TimingsOut(Out):
    """Where the seconds went."""


@publishes(Instrumentation)
class InstrumentationOut(Out):
    """Who placed the milestone markers."""


class SandboxOut(Out):
    """Where the program ran.

    `contended`: other processes slowed the program down, so its duration is not comparable.
    `reused`: the result is from an earlier execution in the same run and on the same data.
    """

    kind: str
    image: str
    contended: bool
    reused: bool


# What the server does not publish of an execution, or publishes in another form.
_UNPUBLISHED = frozenset(
    {"box", "failure", "artifact", "exit_code", "queue_seconds", "boot_seconds"}
    | {"pressure", "contended", "files", "refused"}
)
_PARTS = frozenset({"submission", "program", "execution", "grade", "reward", "reused_from"})


@publishes(Execution, without=_UNPUBLISHED)
class _Outcome(Out):
    job_id: UUID
    solution_id: UUID
    task_id: str
    run_id: str
    status: Literal["scored", "failed"]
    reward: float
    score: float | None
    higher_is_better: bool
    valid: bool
    error: ErrorOut | None
    milestones: _Labels
    # Of the same type as in their dataclasses; declared here to keep their place in the answer.
    duration_seconds: float
    cpu_seconds: float
    timings: TimingsOut


@publishes(Verdict, without=_PARTS)
class ScoreAnswer(_Outcome):
    """The answer of `POST /score`; it always has all of these keys."""

    instrumentation: InstrumentationOut
    sandbox: SandboxOut
    data_digest: str
    scheme: str
    attempt: int

    @classmethod
    def of(cls, stored: StoredAnswer) -> ScoreAnswer:
        """Return the answer for a stored solution."""
        return ScoreAnswer.model_validate(_fields_of(ScoreAnswer, stored))


def _fields_of(model: type[ScoreAnswer], stored: StoredAnswer) -> dict[str, object]:
    """Return the fields of a model that are in a stored answer: renamed ones, then the others."""
    renamed: dict[str, object] = {
        "status": stored.status.value,
        "reward": stored.reward.value,
        "scheme": stored.reward.scheme,
        "scheme_version": stored.reward.version,
        "score": stored.grade.score,
        "valid": stored.failure is None,
        "error": ErrorOut.of(stored.failure),
        "sandbox": SandboxOut(
            kind=stored.execution.box.kind,
            image=stored.execution.box.image,
            contended=stored.execution.contended,
            reused=stored.reused_from is not None,
        ),
    }
    found: dict[str, object] = {}
    for name in model.model_fields:
        if name in renamed:
            found[name] = renamed[name]
            continue
        for part in (stored, stored.program, stored.execution, stored.submission):
            if hasattr(part, name):
                found[name] = getattr(part, name)
                break
    return found


class JobOut(Out):
    """A job that has not ended."""

    job_id: UUID
    status: Literal["queued", "running"]


class JobStateOut(Out):
    """A job and the state it is in."""

    job_id: UUID
    status: Literal["queued", "running", "scored", "failed", "errored", "cancelled"]


class CancelledOut(Out):
    """How many jobs were cancelled."""

    cancelled: int


class NoRewardOut(Out):
    """Why a job ended without a reward."""

    kind: ErrorKind
    blame: Blame
    message: str
    retryable: bool

    @classmethod
    def of(cls, kind: ErrorKind, message: str) -> Self:
        """Return the published form of an error."""
        return cls(kind=kind, blame=kind.blame, message=message, retryable=is_retryable(kind))


class BatchOut(Out):
    """A batch that was accepted."""

    batch_id: UUID
    job_ids: list[UUID]


class ResultOut(ScoreAnswer):
    """An answer, and which item of the batch it belongs to."""

    index: int

    @classmethod
    def at(cls, index: int, stored: StoredAnswer) -> Self:
        """Return the answer of one item."""
        return cls.model_validate(_fields_of(cls, stored) | {"index": index})


class LostOut(Out):
    """An item of a batch that ended without a reward."""

    index: int
    job_id: UUID
    status: Literal["errored", "cancelled"]
    error: NoRewardOut


class BatchProgressOut(Out):
    """The progress of a batch, with answers in the order in which they came."""

    batch_id: UUID
    complete: bool
    results: list[ResultOut]
    errors: list[LostOut]


class EndingOut(Out):
    """The result of a job: an answer, or an error."""

    job_id: UUID
    answer: ScoreAnswer | None
    error: NoRewardOut | None


class EndingsOut(Out):
    """Those of the requested jobs that have ended."""

    ended: list[EndingOut]


@publishes(Relative)
class RelativeOut(Out):
    """An ancestor or a child of a solution."""


class LineageOut(Out):
    """The ancestors and children of a solution."""

    ancestors: list[RelativeOut]
    children: list[RelativeOut]


@publishes(LeaderboardStanding, medal=Literal["gold", "silver", "bronze"] | None)
class StandingOut(Out):
    """The standing of the score among the teams of the original competition.

    `percentile` is the share of teams, 0 to 1, that are strictly worse. Without `exact` the server
    does not know the whole leaderboard and interpolates position and share between known ranks.
    """


@publishes(KeptReward, without=frozenset({"scheme"}))
class RewardOut(Out):
    """The reward of the solution under another scheme, computed by `reward-server rescore`."""


class SolutionOut(ScoreAnswer):
    """A solution with its code, its plan and its lineage.

    `standing` is null without a score, without a leaderboard, or if the task's data has changed
    since. `rewards` has the newest version of each scheme by name; `reward` is the one in the
    answer and never changes.
    """

    step: int | None
    sample_id: str | None
    parent_id: UUID | None
    prompt_kind: str
    code: str
    plan: str
    program_digest: str
    exit_code: int | None
    created_at: datetime
    scheme_version: int
    lineage: LineageOut
    standing: StandingOut | None
    rewards: dict[str, RewardOut]

    @classmethod
    def of_detail(cls, detail: SolutionDetail, standing: LeaderboardStanding | None) -> Self:
        """Return a stored solution as the API shows it."""
        rewards = {kept.scheme: kept for kept in detail.rewards}
        others = {"lineage": detail, "standing": standing, "rewards": rewards}
        return cls.model_validate(_fields_of(cls, detail.answer) | others)


@publishes(StoredSummary, prompt_kind=str, status=str, milestones=_Labels)
class SolutionSummary(Out):
    """A solution as a line of a list."""


class SolutionsOut(Out):
    """One page of solutions."""

    solutions: list[SolutionSummary]
    next_cursor: str | None


class TaskSummary(Out):
    """A task that can be scored."""

    id: str
    title: str
    metric: str
    higher_is_better: bool
    wall_seconds: float
    memory_bytes: int
    data_digest: str
    source: str

    @classmethod
    def of(cls, task: Task, **others: object) -> Self:
        """Return a prepared task as the API shows it."""
        names = cls.model_fields.keys() - others.keys() - {"data_digest", "source"}
        fields = {name: getattr(task.card, name) for name in names}
        source = {"data_digest": task.data_digest, "source": task.source.value}
        return cls.model_validate(fields | source | others)


class TaskOut(TaskSummary):
    """A task with everything that a prompt needs."""

    description: str
    columns: list[str]
    public_files: list[str]
    public_folder: str
    sample_submission: str
    briefing: str
    budget: int

    @classmethod
    def of_briefed(cls, task: Task, briefing: str, budget: int) -> Self:
        """Return a prepared task as the API shows it, with its briefing."""
        return cls.of(
            task,
            description=task.description,
            public_folder=f"/workdir/{task.card.id}/prepared/public",
            briefing=briefing,
            budget=budget,
        )


class TasksOut(Out):
    """The tasks that can be scored."""

    tasks: list[TaskSummary]


class PartOut(Out):
    """A component of the server."""

    ready: bool
    detail: str


class ReadyOut(Out):
    """Whether the server can score, component by component."""

    ready: bool
    database: PartOut
    sandbox: PartOut
    lm: PartOut


class AliveOut(Out):
    """The process runs."""

    alive: Literal[True] = True


class VersionOut(Out):
    """The version of the server."""

    name: str
    version: str
    api: str
    python: str
