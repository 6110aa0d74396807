"""OpenRLHF's remote reward model (`--reward.remote_url`).

Its client sends prompt and completion as one text, with the tokenizer's special tokens in it, and
the prompt once more beside it. A prompt that asks to improve on a program contains that program, so
the completion is separated from the prompt before a program is extracted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

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
from reward_server.errors import RequestError
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from typing import Self

routes = APIRouter()

_ADAPTER = "openrlhf"
_MOST_ITEMS = 1024
_TAIL = 80


class RewardRequest(BaseModel):
    """What OpenRLHF sends: lists of equal length, today with one item each.

    A label is the id of a task, or an object `{"task_id": …, "parent_id": …}`, or its text.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    query: Annotated[list[AnyText], Field(min_length=1, max_length=_MOST_ITEMS)]
    prompts: Annotated[list[AnyText], Field(min_length=1, max_length=_MOST_ITEMS)]
    labels: Annotated[list[LabelIn], Field(min_length=1, max_length=_MOST_ITEMS)]

    @model_validator(mode="after")
    def _has_one_of_each(self) -> Self:
        if not len(self.query) == len(self.prompts) == len(self.labels):
            message = "query, prompts and labels must be of the same length"
            raise ValueError(message)
        return self


class RewardsOut(BaseModel):
    """What OpenRLHF trains on (`rewards`), reports (`scores`) and logs (`extra_logs`)."""

    rewards: list[float]
    scores: list[float]
    extra_logs: dict[str, list[float]]


@routes.post(
    "/openrlhf/get_reward",
    response_model=RewardsOut,
    responses=problem_responses(404, 429),
    openapi_extra=describe_body(RewardRequest),
)
async def get_reward(
    request: Request, services: Wired, client: Client, run_id: RunId = "default"
) -> Response:
    """Score a list of samples; the response is sent when all programs have ended."""
    body = await read_request(request, services.settings.batch_bytes, RewardRequest)
    samples = [
        AdapterSample(_ADAPTER, read_label(label), completion_in(query, prompt), run_id)
        for query, prompt, label in zip(body.query, body.prompts, body.labels, strict=True)
    ]
    answers = await score(services, client, samples)
    rewards = [answer.reward.value for answer in answers]
    measured = [measure(answer) for answer in answers]
    logs = {name: [one[name] for one in measured] for name in measured[0]}
    return as_json(RewardsOut(rewards=rewards, scores=rewards, extra_logs=logs), 200)


def completion_in(query: str, prompt: str) -> str:
    """Return what follows the prompt, without the special tokens at its end.

    The trainer truncates a long prompt at its beginning, and a tokenizer may change white space. If
    the query does not start with the prompt, the end of the prompt is searched for instead.

    Raises:
        RequestError: `invalid_request` when the beginning of the completion is not found.
    """
    tail = prompt.rstrip()[-_TAIL:]
    if query.startswith(prompt):
        answer = query[len(prompt) :]
    elif tail and (found := query.find(tail)) >= 0:
        answer = query[found + len(tail) :]
    else:
        message = "query does not contain its prompt, so the completion cannot be separated from it"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)
    return without_special_tokens(answer)
