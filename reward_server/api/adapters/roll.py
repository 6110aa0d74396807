"""ROLL's remote reward system (`RemoteRewardSystemWorker`): submit a sample, then poll for it.

Errors have status 200 and an `errcode`, because ROLL's client logs only the number of any other
status. A job that ended without a reward has an `errcode` and no score; ROLL submits such a sample
again, up to five times, and each submission runs the job again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from reward_server.api import problems
from reward_server.api.adapters.samples import (
    AdapterSample,
    Label,
    RunId,
    label_in,
    measure,
    read_label,
    submit,
)
from reward_server.api.schemas.requests import AnyText, Step, describe_body, read_request
from reward_server.api.services import Client, Wired, as_json, parse_id
from reward_server.errors import InfrastructureError, RequestError
from reward_server.store.values import JobState, StoredAnswer

routes = APIRouter()

_ADAPTER = "roll"
_RUNNING = 1
_REQUEST_ID = {  # ROLL's own GET has a body instead, which OpenAPI gives no meaning
    "name": "reward_request_id",
    "in": "query",
    "required": True,
    "schema": {"type": "string", "maxLength": 64},
}

Identity = str | int


class SubmitRequest(BaseModel):
    """What ROLL submits; `reward_info` names the task, directly or as its `ground_truth`.

    `priority`, `reward_manager` and `timeout` are for other reward systems and have no effect: the
    task limits how long a program may run, and ROLL's next attempt joins a job that it gave up.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    project_id: Identity
    experiment_id: Identity
    global_step: Step
    data_id: Identity
    rollout_id: Identity
    prompt: AnyText
    response: AnyText
    reward_info: dict[str, Any]
    priority: Any = None
    reward_manager: Any = None
    timeout: Any = None

    def label(self) -> Label:
        """Return what the row says about its prompt."""
        if "task_id" not in self.reward_info and "ground_truth" in self.reward_info:
            return read_label(self.reward_info["ground_truth"])
        return label_in(self.reward_info)


class SubmittedOut(BaseModel):
    """The id to poll the reward with; `errcode` is 0 if the sample was accepted."""

    errcode: int
    errmsg: str = ""
    reward_request_id: str | None = None


class ResultRequest(BaseModel):
    """Which reward ROLL asks for."""

    model_config = ConfigDict(strict=True, frozen=True)

    reward_request_id: Annotated[str, Field(max_length=64)]


class DebugOut(BaseModel):
    """How long a part of the reward took."""

    time_cost: float


class DimensionOut(BaseModel):
    """One part of the reward, and where its time went."""

    score: float
    debug_info: dict[str, DebugOut]


class RollResultOut(BaseModel):
    """The reward (`errcode` 0), that it is pending (1), or why there is none (above 1)."""

    errcode: int
    errmsg: str = ""
    reward_score: float | None = None
    dimention_reward_score: dict[str, DimensionOut] = {}
    start_time: str | None = None
    end_time: str | None = None
    extra: dict[str, float] = {}


@routes.post(
    "/roll/submit", response_model=SubmittedOut, openapi_extra=describe_body(SubmitRequest)
)
async def submit_task(
    request: Request, services: Wired, client: Client, run_id: RunId | None = None
) -> Response:
    """Accept a sample, durably; the same sample again joins its job."""
    body = await read_request(request, services.settings.body_bytes, SubmitRequest)
    try:
        sample = AdapterSample(
            _ADAPTER,
            body.label(),
            body.response,
            run_id or f"{body.project_id}/{body.experiment_id}"[:256],
            body.global_step,
            f"{body.data_id}/{body.rollout_id}"[:256],
        )
        accepted = await submit(services, client, sample)
    except (RequestError, InfrastructureError) as error:
        return as_json(SubmittedOut(errcode=_errcode(error), errmsg=error.message), 200)
    return as_json(SubmittedOut(errcode=0, reward_request_id=str(accepted.job_id)), 200)


@routes.get(
    "/roll/result",
    response_model=RollResultOut,
    responses=problems.problem_responses(413, 415),
    openapi_extra={"parameters": [_REQUEST_ID]},
)
async def task_result(
    request: Request,
    services: Wired,
    reward_request_id: Annotated[str | None, Query(max_length=64, include_in_schema=False)] = None,
) -> Response:
    """Return the reward of a submitted sample; ROLL sends its id in a JSON body."""
    if reward_request_id is None:
        body = await read_request(request, services.settings.body_bytes, ResultRequest)
        reward_request_id = body.reward_request_id
    try:
        ending = await services.jobs.look_up(parse_id(reward_request_id, "job"))
    except (RequestError, InfrastructureError) as error:
        return as_json(RollResultOut(errcode=_errcode(error), errmsg=error.message), 200)
    if isinstance(ending, JobState):
        return as_json(RollResultOut(errcode=_RUNNING, errmsg=ending.value), 200)
    return as_json(_result(ending), 200)


def _result(answer: StoredAnswer) -> RollResultOut:
    program = DebugOut(time_cost=answer.execution.duration_seconds)
    part = DimensionOut(score=answer.reward.value, debug_info={"program": program})
    started = answer.created_at - timedelta(seconds=answer.timings.total)
    return RollResultOut(
        errcode=0,
        reward_score=answer.reward.value,
        dimention_reward_score={"reward_server": part},
        start_time=started.isoformat(),
        end_time=answer.created_at.isoformat(),
        extra=measure(answer),
    )


def _errcode(error: RequestError | InfrastructureError) -> int:
    return problems.status_of(error.kind)
