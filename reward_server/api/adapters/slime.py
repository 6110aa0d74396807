"""slime's remote reward model (`--rm-type remote_rm --rm-url …`).

The response is the reward itself. slime's `--reward-key NAME` expects an object instead: add
`reward_key=NAME` to the URL to get one, with the reward under that name and the duration beside it.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, RootModel

from reward_server.api.adapters.samples import (
    AdapterSample,
    LabelIn,
    RunId,
    measure,
    read_label,
    score,
)
from reward_server.api.adapters.special_tokens import without_special_tokens
from reward_server.api.problems import problem_responses
from reward_server.api.schemas.requests import AnyText, describe_body, read_request
from reward_server.api.services import Client, Wired, as_json

routes = APIRouter()

_ADAPTER = "slime"


class SlimeRequest(BaseModel):
    """What slime sends for one sample; the label names the task."""

    model_config = ConfigDict(strict=True, frozen=True)

    prompt: AnyText | list[dict[str, Any]]
    response: AnyText
    label: LabelIn


class SlimeRewardOut(RootModel[float | dict[str, float]]):
    """The reward, or an object with the reward under the name in `reward_key`."""


@routes.post(
    "/slime",
    response_model=SlimeRewardOut,
    responses=problem_responses(404, 429),
    openapi_extra=describe_body(SlimeRequest),
)
async def reward(
    request: Request,
    services: Wired,
    client: Client,
    run_id: RunId = "default",
    reward_key: Annotated[
        str | None,
        Query(min_length=1, max_length=64, description="slime's --reward-key, if it is set."),
    ] = None,
) -> Response:
    """Score one sample; the response is sent when the program has ended."""
    body = await read_request(request, services.settings.body_bytes, SlimeRequest)
    written = without_special_tokens(body.response)  # slime sends the end-of-turn token
    sample = AdapterSample(_ADAPTER, read_label(body.label), written, run_id)
    [answer] = await score(services, client, [sample])
    if reward_key is None:
        return as_json(SlimeRewardOut(answer.reward.value), 200)
    return as_json(SlimeRewardOut({**measure(answer), reward_key: answer.reward.value}), 200)
