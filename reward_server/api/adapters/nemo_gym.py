"""A resources server of NeMo-Gym: `/seed_session`, `/verify`, `/aggregate_metrics`.

The agent sends a row of its data set with the model's response in it; the server returns the row
with a reward and numbers to log. `task_id` and, optionally, `parent_id`, `wall_seconds` and
`run_id` are fields of the row.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from reward_server.api.adapters.samples import AdapterSample, RunId, label_in, measure, score
from reward_server.api.problems import problem_responses
from reward_server.api.schemas.requests import (
    Name,
    SolutionId,
    WallSeconds,
    describe_body,
    read_request,
)
from reward_server.api.services import Client, Wired, as_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

routes = APIRouter(prefix="/nemo-gym")

_ADAPTER = "nemo-gym"
_TASK, _ROLLOUT = "_ng_task_index", "_ng_rollout_index"
_LARGEST = 1e100


class SeedRequest(BaseModel):
    """The row of a new rollout; the server stores nothing of it."""

    model_config = ConfigDict(frozen=True)


class SeedOut(BaseModel):
    """Empty: there is nothing to seed."""


class ModelResponse(BaseModel):
    """An OpenAI response, as far as it matters here: its items, of which messages are read."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    output: list[dict[str, Any]]

    def text(self) -> str:
        """Return the last message of the model; empty without one."""
        messages = [item for item in self.output if item.get("type") == "message"]
        written = [item for item in messages if item.get("role", "assistant") == "assistant"]
        content = written[-1].get("content") if written else None
        if not isinstance(content, list):
            return content if isinstance(content, str) else ""
        parts = [part for part in content if isinstance(part, dict)]
        texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
        return "".join(text for text in texts if isinstance(text, str))


class VerifyRequest(BaseModel):
    """What a NeMo-Gym agent sends: the row, the request to the model, and its response."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    responses_create_params: dict[str, Any]
    response: ModelResponse
    task_id: Name
    parent_id: SolutionId | None = None
    wall_seconds: WallSeconds | None = None
    run_id: Name | None = None


class VerifyOut(BaseModel):
    """The request with its reward and measurements."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: dict[str, Any]
    response: dict[str, Any]
    reward: float
    duration_seconds: float


class MetricsRequest(BaseModel):
    """Answers of `/verify`, stripped of their texts."""

    model_config = ConfigDict(strict=True, frozen=True)

    verify_responses: Annotated[list[dict[str, Any]], Field(max_length=1_000_000)]


class MetricsOut(BaseModel):
    """Statistics of every number in the answers: for each task of the data set, and over all."""

    group_level_metrics: list[dict[str, int | float]]
    agent_metrics: dict[str, float]
    key_metrics: dict[str, float]


@routes.post("/seed_session", response_model=SeedOut, openapi_extra=describe_body(SeedRequest))
async def seed_session(request: Request, services: Wired) -> Response:
    """Begin a rollout; this does nothing."""
    await read_request(request, services.settings.batch_bytes, SeedRequest)
    return as_json(SeedOut(), 200)


@routes.post(
    "/verify",
    response_model=VerifyOut,
    responses=problem_responses(404, 429),
    openapi_extra=describe_body(VerifyRequest),
)
async def verify(
    request: Request, services: Wired, client: Client, run_id: RunId = "default"
) -> Response:
    """Score a completion; the response is sent when the program has ended."""
    body = await read_request(request, services.settings.batch_bytes, VerifyRequest)
    row = body.model_dump(exclude_unset=True)
    indices = [row[name] for name in (_TASK, _ROLLOUT) if isinstance(row.get(name), int)]
    sample = AdapterSample(
        _ADAPTER,
        label_in(row),
        body.response.text(),
        body.run_id or run_id,
        name="/".join(map(str, indices))[:256] or None,
    )
    [answer] = await score(services, client, [sample])
    content = {**row, **measure(answer), "reward": answer.reward.value}
    text = await asyncio.to_thread(json.dumps, content)  # with all tokens and their logarithms
    return Response(text, media_type="application/json")


@routes.post(
    "/aggregate_metrics", response_model=MetricsOut, openapi_extra=describe_body(MetricsRequest)
)
async def aggregate_metrics(request: Request, services: Wired) -> Response:
    """Sum up many answers."""
    body = await read_request(request, services.settings.batch_bytes, MetricsRequest)
    return as_json(await asyncio.to_thread(_sum_up, body.verify_responses), 200)


def _sum_up(rows: Sequence[Mapping[str, Any]]) -> MetricsOut:
    tasks: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        index = row.get(_TASK)
        tasks[index if isinstance(index, int) else 0].append(row)
    overall = _describe(rows)
    return MetricsOut(
        group_level_metrics=[{_TASK: i, **_describe(some)} for i, some in sorted(tasks.items())],
        agent_metrics=overall,
        key_metrics={name: overall[name] for name in ("mean/reward",) if name in overall},
    )


def _describe(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    numbers: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            is_number = isinstance(value, int | float) and abs(value) < _LARGEST
            if is_number and name not in (_TASK, _ROLLOUT):
                numbers[name].append(float(value))
    return {
        f"{what}/{name}": value
        for name, values in numbers.items()
        for what, value in _statistics(values).items()
    }


def _statistics(values: Sequence[float]) -> dict[str, float]:
    found = np.asarray(values)
    return {
        "mean": float(found.mean()),
        "max": float(found.max()),
        "min": float(found.min()),
        "median": float(np.median(found)),
        "std": float(found.std(ddof=1)) if len(found) > 1 else 0.0,
    }
