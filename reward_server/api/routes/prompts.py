"""The routes of prompts: prompts for a model, and the gain from improving on solutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from reward_server.api.problems import problem_responses
from reward_server.api.schemas.derived import Out, publishes
from reward_server.api.schemas.requests import (
    WHOLE,
    Name,
    Step,
    WallSeconds,
    describe_body,
    read_request,
)
from reward_server.api.services import Wired, as_json
from reward_server.prompts.prompt_types import CharacterBudget, PromptQuery, Strategy, TokenBudget
from reward_server.store.solutions.parents import BestOfBoth, Spread

if TYPE_CHECKING:
    from reward_server.prompts.prompt_types import Budget, Prompt

MOST_PROMPTS = 1024
_LARGEST_BUDGET = 1 << 20
_CHARACTERS = {"properties": {"characters": {"type": "integer"}}, "required": ["characters"]}
_TOKENS = {
    "properties": {"tokens": {"type": "integer"}, "tokenizer": {"type": "string"}},
    "required": ["tokens", "tokenizer"],
}
_ONE_UNIT: dict[str, Any] = {"oneOf": [_CHARACTERS, _TOKENS]}
_BESIDE_PARENT_IDS = {"parent_ids", "task_id", "budget", "wall_seconds"}

routes = APIRouter()


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BudgetIn(_In):
    """The maximum length of a prompt.

    Either `characters`, over the contents of all messages, or `tokens` of a configured
    `tokenizer`, over the whole rendered prompt.
    """

    model_config = ConfigDict(json_schema_extra=_ONE_UNIT)

    characters: Annotated[int, Field(ge=1, le=_LARGEST_BUDGET), WHOLE] | None = None
    tokens: Annotated[int, Field(ge=1, le=_LARGEST_BUDGET), WHOLE] | None = None
    tokenizer: Name | None = None

    @model_validator(mode="after")
    def _has_one_unit(self) -> Self:
        if (self.characters is None) == (self.tokens is None):
            message = "exactly one of characters and tokens is needed"
            raise ValueError(message)
        if (self.tokens is None) != (self.tokenizer is None):
            message = "tokens and tokenizer belong together"
            raise ValueError(message)
        return self

    def budget(self) -> Budget:
        """Return the budget for the prompt service."""
        if self.tokens is not None and self.tokenizer is not None:
            return TokenBudget(self.tokens, self.tokenizer)
        return CharacterBudget(self.characters or 0)


class PromptsRequest(_In):
    """The prompts to make.

    `scope` is where `best`, `softmax` and `diverse` search for parents; `previous_step` stays in
    its run. The defaults of `parents`, `temperature` and `budget` come from the settings.
    `parent_ids` requests one prompt for each of these solutions, whatever their run; only
    `task_id`, `budget` and `wall_seconds` can be combined with it.
    """

    task_id: Name
    run_id: Name = "default"
    n: Annotated[int, Field(ge=1, le=MOST_PROMPTS), WHOLE] = 1
    improve_fraction: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    strategy: Literal["previous_step", "best", "softmax", "diverse"] = "previous_step"
    seed: Step | None = None
    budget: BudgetIn | None = None
    step: Step | None = None
    wall_seconds: WallSeconds | None = None
    parents: Literal["valid", "any"] | None = None
    scope: Literal["run", "task"] = "run"
    temperature: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] | None = None
    parent_ids: (
        Annotated[
            list[Annotated[UUID, Field(strict=False)]],
            Field(min_length=1, max_length=MOST_PROMPTS),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _chooses_once(self) -> Self:
        others = self.model_fields_set - _BESIDE_PARENT_IDS
        if self.parent_ids is not None and others:
            message = f"parent_ids leaves nothing to choose: leave out {', '.join(sorted(others))}"
            raise ValueError(message)
        return self

    def query(self) -> PromptQuery:
        """Return the query for the prompt service."""
        return PromptQuery(
            task_id=self.task_id,
            run_id=self.run_id,
            count=self.n,
            improve_fraction=self.improve_fraction,
            strategy=Strategy(self.strategy),
            seed=self.seed,
            budget=None if self.budget is None else self.budget.budget(),
            step=self.step,
            wall_seconds=self.wall_seconds,
            failed_too=None if self.parents is None else self.parents == "any",
            temperature=self.temperature,
            of_all_runs=self.scope == "task",
            parent_ids=tuple(self.parent_ids or ()),
        )


class MessageOut(Out):
    """One message of a chat."""

    role: Literal["system", "user"]
    content: str


class PromptOut(Out):
    """A prompt; send `kind` and `parent_id` along with what the model answers.

    `fallback` says why a prompt that should improve on a solution is one from scratch.
    """

    kind: Literal["scratch", "improve"]
    messages: list[MessageOut]
    parent_id: UUID | None
    fallback: str | None


class PromptsOut(Out):
    """The prompts, in the order in which they were drawn."""

    prompts: list[PromptOut]

    @classmethod
    def of(cls, prompts: tuple[Prompt, ...]) -> Self:
        """Return prompts as the API shows them."""
        return cls.model_validate({"prompts": prompts})


@publishes(Spread)
class SpreadOut(Out):
    """The mean and the highest of some rewards."""


@publishes(BestOfBoth, from_scratch=SpreadOut, from_improving=SpreadOut, best_of_both=SpreadOut)
class BestOfBothOut(Out):
    """The gain from improving on solutions in a run.

    A sample is a solution from scratch; of its children the best counts.
    """


@routes.post(
    "/v1/prompts",
    response_model=PromptsOut,
    responses=problem_responses(404),
    openapi_extra=describe_body(PromptsRequest),
)
async def prompts(request: Request, services: Wired) -> Response:
    """Make prompts of a task, some of which ask to improve on a stored solution."""
    body = await read_request(request, services.settings.body_bytes, PromptsRequest)
    made = await services.prompts.create_prompts(body.query())
    return as_json(PromptsOut.of(made), 200)


@routes.get("/v1/runs/{run_id:path}/best-of-both", responses=problem_responses(404))
async def best_of_both(
    run_id: str, task_id: Annotated[str, Query(min_length=1, max_length=256)], services: Wired
) -> BestOfBothOut:
    """Compare a run's solutions from scratch with those that improve on them."""
    found = await services.prompts.best_of_both(task_id, run_id)
    return BestOfBothOut.model_validate(found)
