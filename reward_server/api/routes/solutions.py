"""The routes of the store: solutions, their lineage, and statistics of runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Self

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from reward_server.api.problems import problem_responses
from reward_server.api.schemas import answers
from reward_server.api.schemas.derived import publishes
from reward_server.api.schemas.requests import SolutionId
from reward_server.api.services import NDJSON, Id, Wired, parse_id
from reward_server.errors import RequestError
from reward_server.model import ErrorKind
from reward_server.store.solutions.lineage import MOST_GENERATIONS, Generation
from reward_server.store.solutions.paging import SolutionFilter, SortOrder
from reward_server.store.solutions.statistics import MOST_RUNS, RunSpan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reward_server.store.solutions.records import Record
    from reward_server.store.solutions.statistics import StepStatistics

routes = APIRouter()

_Name = Annotated[str, Field(max_length=256)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Generations = Annotated[int, Query(ge=0, le=MOST_GENERATIONS)]


class _Filter(BaseModel):
    """Selects solutions."""

    model_config = ConfigDict(extra="forbid")

    task_id: _Name | None = None
    run_id: _Name | None = None
    step: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    valid: bool | None = None
    prompt_kind: _Name | None = None
    error_kind: _Name | None = None
    program_digest: _Name | None = None
    parent_id: SolutionId | None = None
    data_digest: _Name | None = None
    min_reward: _Number | None = None
    max_reward: _Number | None = None
    min_duration: _Number | None = None
    max_duration: _Number | None = None
    text: Annotated[str, Field(min_length=1, max_length=1000)] | None = None


class SolutionQuery(_Filter):
    """Selects solutions, their order, and the page."""

    order: SortOrder = SortOrder.REWARD
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    cursor: str | None = None


class _Row(BaseModel):
    model_config = ConfigDict(from_attributes=True, frozen=True)


@publishes(Generation)
class GenerationOut(_Row):
    """A solution in a lineage; `generation` is negative for ancestors, positive for descendants."""


class GenerationsOut(BaseModel):
    """Ancestors, the solution itself and descendants, the oldest first."""

    lineage: list[GenerationOut]


@publishes(RunSpan)
class RunOut(_Row):
    """A run that has solutions."""


class RunsOut(BaseModel):
    """Runs by name; pass `next_after` as `after` to get the next page."""

    runs: list[RunOut]
    next_after: str | None


class DurationsOut(BaseModel):
    """How long programs took, in seconds."""

    mean: float
    p50: float
    p95: float


class StepOut(BaseModel):
    """Statistics of the solutions of a task in one step, or in all steps if `is_total`."""

    task_id: str
    step: int | None
    is_total: bool
    solutions: int
    share_valid: float
    share_improve: float
    mean_reward: float
    max_reward: float
    spread_reward: float | None
    best_score: float | None
    failures: dict[str, int]
    milestones: dict[str, int]
    duration_seconds: DurationsOut

    @classmethod
    def of(cls, value: StepStatistics) -> Self:
        """Return the statistics of a step as the API shows them."""
        shares = {
            "share_valid": value.valid / value.solutions,
            "share_improve": value.improved / value.solutions,
            "duration_seconds": DurationsOut(
                mean=value.mean_duration, p50=value.p50_duration, p95=value.p95_duration
            ),
        }
        same = {name: getattr(value, name) for name in cls.model_fields.keys() - shares}
        return cls.model_validate(same | shares)


class StatisticsOut(BaseModel):
    """Statistics of a run: for each task the total first, then step by step."""

    run_id: str
    steps: list[StepOut]


@routes.get("/v1/solutions")
async def solutions(
    wanted: Annotated[SolutionQuery, Query()], services: Wired
) -> answers.SolutionsOut:
    """List solutions: the best, the newest or the longest first."""
    page = await services.store.solutions(SolutionFilter(**wanted.model_dump()))
    return answers.SolutionsOut.model_validate(page)


@routes.get(
    "/v1/solutions/export",
    response_class=StreamingResponse,
    responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}}},
)
async def export(wanted: Annotated[_Filter, Query()], services: Wired) -> Response:
    """Return whole solutions, the oldest first, a line of JSON each."""
    pages = services.archive.transfer.pages(SolutionFilter(**wanted.model_dump()))
    no_page: list[Record] = []
    first = await anext(pages, no_page)  # an error must surface before the status is sent
    return StreamingResponse(_lines(first, pages), media_type=NDJSON)


async def _lines(first: list[Record], others: AsyncIterator[list[Record]]) -> AsyncIterator[str]:
    yield _text(first)
    async for page in others:
        yield _text(page)


def _text(page: list[Record]) -> str:
    return "".join(json.dumps(record) + "\n" for record in page)


@routes.get("/v1/solutions/{solution_id}", responses=problem_responses(404))
async def solution(solution_id: Id, services: Wired) -> answers.SolutionOut:
    """Return one solution with code, output, lineage, standing and rewards of other schemes."""
    detail = await services.store.solution(parse_id(solution_id, "solution"))
    if detail is None:
        raise RequestError(ErrorKind.NOT_FOUND, "there is no such solution")
    stored = detail.answer
    standing = services.registry.standing(
        stored.submission.task_id, stored.data_digest, stored.grade.score
    )
    return answers.SolutionOut.of_detail(detail, standing)


@routes.get("/v1/solutions/{solution_id}/lineage", responses=problem_responses(404))
async def lineage(
    solution_id: Id, services: Wired, up: _Generations = 10, down: _Generations = 10
) -> GenerationsOut:
    """Return the ancestors and descendants of a solution, with the change at every step."""
    found = await services.archive.lineage.of(parse_id(solution_id, "solution"), up, down)
    if not found:
        raise RequestError(ErrorKind.NOT_FOUND, "there is no such solution")
    return GenerationsOut.model_validate({"lineage": found})


@routes.get("/v1/runs")
async def runs(
    services: Wired,
    after: Annotated[str | None, Query(max_length=256)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_RUNS)] = 100,
) -> RunsOut:
    """List the runs that have solutions, by name."""
    found = await services.archive.statistics.runs(after, limit)
    has_more = len(found) == limit
    next_after = found[-1].run_id if has_more else None
    return RunsOut.model_validate({"runs": found, "next_after": next_after})


@routes.get("/v1/runs/{run_id:path}/statistics", responses=problem_responses(404))
async def statistics(
    run_id: str, services: Wired, task_id: Annotated[str | None, Query(max_length=256)] = None
) -> StatisticsOut:
    """Return rewards, failures, milestones and durations of a run, step by step."""
    steps = await services.archive.statistics.steps(run_id, task_id)
    if not steps:
        raise RequestError(ErrorKind.NOT_FOUND, "there are no solutions of such a run")
    return StatisticsOut(run_id=run_id, steps=[StepOut.of(one) for one in steps])
