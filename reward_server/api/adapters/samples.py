"""What all adapters share: a trainer's sample becomes a job, its answer becomes numbers to log.

The clients of these trainers repeat a request after a time-out, with the same body and without an
idempotency key. The adapter therefore derives the key from the whole request, so that a repetition
joins the running job. Two rollouts of one run with the same text are one job as well, with the same
reward and the same duration.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query
from pydantic import BaseModel, ConfigDict, ValidationError, WithJsonSchema

from reward_server.api.schemas.requests import JobRequest, Name, SolutionId, WallSeconds
from reward_server.errors import InfrastructureError, RequestError
from reward_server.model import ErrorKind
from reward_server.store.values import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from reward_server.api.services import Services
    from reward_server.store.values import Accepted, StoredAnswer

RunId = Annotated[
    str,
    Query(min_length=1, max_length=256, description="The training run that samples belong to."),
]

_STOPPED = "the server is being stopped; ask again"


class Label(BaseModel):
    """The label in a row of the trainer's data set: the task of its prompt."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    task_id: Name
    parent_id: SolutionId | None = None
    wall_seconds: WallSeconds | None = None


LabelIn = Annotated[
    str | dict[str, Any],
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1, "description": "The id of a task."},
                Label.model_json_schema(),
            ]
        }
    ),
]
"""A label as trainers send it; `read_label` parses it."""


def read_label(label: object) -> Label:
    """Parse a label: the id of a task, or an object with `task_id` and more, or its JSON text.

    Raises:
        RequestError: `invalid_request`.
    """
    if isinstance(label, str) and label.lstrip().startswith("{"):
        try:
            label = json.loads(label)
        except (ValueError, RecursionError):
            raise RequestError(ErrorKind.INVALID_REQUEST, "the label is not JSON") from None
    content = {"task_id": label} if isinstance(label, str) else label
    try:
        return Label.model_validate(content)
    except ValidationError as error:
        message = f"the label must name the task: {_first(error)}"
        raise RequestError(ErrorKind.INVALID_REQUEST, message) from None


def label_in(row: Mapping[str, object]) -> Label:
    """Parse a label whose fields are among others in a row.

    Raises:
        RequestError: `invalid_request`.
    """
    return read_label({name: row[name] for name in Label.model_fields if name in row})


@dataclass(frozen=True, slots=True)
class AdapterSample:
    """A completion of the policy, its position in the run, and the adapter it came through."""

    adapter: str
    label: Label
    completion: str
    run_id: str
    step: int | None = None
    name: str | None = None

    def request(self) -> JobRequest:
        """Return the equivalent body of `POST /v1/jobs`.

        Raises:
            RequestError: `invalid_request`.
        """
        content: dict[str, Any] = {
            "task_id": self.label.task_id,
            "completion": self.completion,
            "run_id": self.run_id,
            "step": self.step,
            "sample_id": self.name,
            "parent_id": self.label.parent_id,
            "prompt_kind": "scratch" if self.label.parent_id is None else "improve",
            "wall_seconds": self.label.wall_seconds,
        }
        content_bytes = json.dumps([self.adapter, content], sort_keys=True).encode()
        content["idempotency_key"] = f"{self.adapter}/{hashlib.sha256(content_bytes).hexdigest()}"
        try:
            return JobRequest.model_validate(content)
        except ValidationError as error:
            raise RequestError(ErrorKind.INVALID_REQUEST, _first(error)) from None


async def submit(services: Services, client: str, sample: AdapterSample) -> Accepted:
    """Create a durable job for a sample, or join the job of an equal request.

    Raises:
        RequestError, InfrastructureError: as `JobService.submit` does.
    """
    return await services.jobs.submit(sample.request().to_job(client))


async def score(
    services: Services, client: str, samples: Iterable[AdapterSample]
) -> list[StoredAnswer]:
    """Score samples concurrently and wait for all of them, without a time limit.

    Raises:
        RequestError: one of them cannot be scored.
        InfrastructureError: one of them has no reward; a repeated request finds the others.
    """
    accepted = [await submit(services, client, sample) for sample in samples]
    return [await _wait(services, one.job_id, is_fresh=one.is_new) for one in accepted]


async def _wait(services: Services, job_id: UUID, *, is_fresh: bool) -> StoredAnswer:
    ending = await services.jobs.wait(job_id, None, is_fresh=is_fresh)
    if isinstance(ending, JobState):
        raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, _STOPPED)
    return ending


def measure(answer: StoredAnswer) -> dict[str, float]:
    """Return numbers for a trainer to log beside the reward, the same set for every sample."""
    failure, execution = answer.failure, answer.execution
    return {
        "valid": float(failure is None),
        "medal": float(answer.medal is not None),
        "milestones": float(len(execution.milestones)),
        "timed_out": float(failure is not None and failure.kind is ErrorKind.TIMEOUT),
        "duration_seconds": execution.duration_seconds,
        "cpu_seconds": execution.cpu_seconds,
        "queue_seconds": answer.timings.queue,
        "contended": float(execution.contended),
    }


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    return f"{'.'.join(str(part) for part in found['loc'])[:80]}: {found['msg']}"
