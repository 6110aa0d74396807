"""The routes of jobs and batches: submit, wait, stream, cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.convertors import StringConvertor, register_url_convertor

from reward_server.api.problems import problem_responses
from reward_server.api.schemas import answers
from reward_server.api.schemas.requests import (
    BatchRequest,
    CancelRequest,
    JobRequest,
    ScoreRequest,
    WaitRequest,
    describe_body,
    describe_submission,
    read_request,
    read_submission,
)
from reward_server.api.services import NDJSON, Client, Id, Wired, as_json, lines_of, parse_id
from reward_server.errors import InfrastructureError, RequestError
from reward_server.model import ErrorKind
from reward_server.store.values import JobState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from uuid import UUID

    from reward_server.api.services import Services
    from reward_server.jobs.batch_progress import BatchProgress
    from reward_server.store.values import BatchItem, StoredAnswer


class _JobConvertor(StringConvertor):
    """Matches the id of a job in a path, but not the routes `wait` and `cancel`."""

    regex = "(?!(?:wait|cancel)$)[^/]+"


register_url_convertor("job", _JobConvertor())
routes = APIRouter()

Seconds = Annotated[float, Query(ge=0, le=3600, allow_inf_nan=False)]
_RESULTS_AT_ONCE = 100
_ACCEPTED: dict[int | str, dict[str, Any]] = {202: {"model": answers.JobOut}}
_REFUSALS = problem_responses(404, 409, 413, 429)
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A line of JSON for each item that has ended; ignore blank lines.",
        "headers": {"Batch-Id": {"required": True, "schema": {"type": "string", "format": "uuid"}}},
        "content": {NDJSON: {"schema": lines_of("ResultOut", "LostOut")}},
    }
}
_SCORE: dict[str, Any] = {
    "response_model": answers.ScoreAnswer,
    "responses": {**_ACCEPTED, **_REFUSALS},
    "openapi_extra": describe_submission(ScoreRequest),
}
_SCORE_BATCH: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {**_STREAM, **_REFUSALS},
    "openapi_extra": describe_body(BatchRequest),
}


@routes.post("/score", **_SCORE)
@routes.post("/v1/score", **_SCORE)
async def score(request: Request, services: Wired, client: Client) -> Response:
    """Score one submission; wait until it has ended, or for `wait_seconds`."""
    body = await read_submission(request, services.settings.body_bytes, ScoreRequest)
    accepted = await services.jobs.submit(body.to_job(client))
    ending = await services.jobs.wait(accepted.job_id, body.wait_seconds, is_fresh=accepted.is_new)
    return _job_response(accepted.job_id, ending)


@routes.post(
    "/v1/jobs",
    status_code=202,
    response_model=answers.JobStateOut,
    responses=_REFUSALS,
    openapi_extra=describe_submission(JobRequest),
)
async def submit(request: Request, services: Wired, client: Client) -> Response:
    """Accept one submission durably and return its job at once; it may have ended already."""
    body = await read_submission(request, services.settings.body_bytes, JobRequest)
    accepted = await services.jobs.submit(body.to_job(client))
    content = answers.JobStateOut(job_id=accepted.job_id, status=accepted.state.value)
    return as_json(content, 202)


@routes.post(
    "/v1/jobs/wait",
    response_model=answers.EndingsOut,
    responses=problem_responses(404),
    openapi_extra=describe_body(WaitRequest),
)
async def wait_for_any(request: Request, services: Wired) -> Response:
    """Wait up to `wait_seconds` until one of many jobs has ended; return all that have."""
    body = await read_request(request, services.settings.body_bytes, WaitRequest)
    job_ids = [parse_id(job_id, "job") for job_id in body.job_ids]
    endings = await services.jobs.wait_for_any(job_ids, body.wait_seconds)
    ended = [_completed(job_id, ending) for job_id, ending in endings.items()]
    return as_json(answers.EndingsOut(ended=ended), 200)


def _completed(
    job_id: UUID, ending: StoredAnswer | InfrastructureError | RequestError
) -> answers.EndingOut:
    if isinstance(ending, InfrastructureError | RequestError):
        error = answers.NoRewardOut.of(ending.kind, ending.message)
        return answers.EndingOut(job_id=job_id, answer=None, error=error)
    return answers.EndingOut(job_id=job_id, answer=answers.ScoreAnswer.of(ending), error=None)


@routes.get(
    "/v1/jobs/{job_id:job}",
    response_model=answers.ScoreAnswer,
    responses={**_ACCEPTED, **problem_responses(404)},
)
async def job(job_id: Id, services: Wired, wait_seconds: Seconds = 0.0) -> Response:
    """Return a job's answer once it has ended, waiting for it up to `wait_seconds`."""
    parsed = parse_id(job_id, "job")
    return _job_response(parsed, await services.jobs.wait(parsed, wait_seconds))


@routes.delete("/v1/jobs/{job_id:job}", responses=problem_responses(404))
async def cancel(job_id: Id, services: Wired) -> answers.JobStateOut:
    """Cancel a job; one that has ended does not change."""
    parsed = parse_id(job_id, "job")
    state = await services.jobs.cancel(parsed)
    return answers.JobStateOut(job_id=parsed, status=state.value)


@routes.post(
    "/v1/jobs/cancel",
    response_model=answers.CancelledOut,
    openapi_extra=describe_body(CancelRequest),
)
async def cancel_steps(request: Request, services: Wired, client: Client) -> Response:
    """Cancel the unfinished jobs of a run up to a step that were sent with the same API key."""
    body = await read_request(request, services.settings.body_bytes, CancelRequest)
    ended = await services.jobs.cancel_steps(body.run_id, body.up_to_step, client)
    return as_json(answers.CancelledOut(cancelled=ended), 200)


def _job_response(job_id: UUID, ending: StoredAnswer | JobState) -> Response:
    if isinstance(ending, JobState):
        return as_json(answers.JobOut(job_id=job_id, status=_open_state(ending)), 202)
    return as_json(answers.ScoreAnswer.of(ending), 200)


def _open_state(state: JobState) -> Literal["queued", "running"]:
    return "queued" if state is JobState.QUEUED else "running"


@routes.post(
    "/v1/batches",
    status_code=202,
    response_model=answers.BatchOut,
    responses=_REFUSALS,
    openapi_extra=describe_body(BatchRequest),
)
async def submit_batch(request: Request, services: Wired, client: Client) -> Response:
    """Accept all items of a batch durably, or none."""
    batch_id, job_ids = await _submit_batch(request, services, client)
    return as_json(answers.BatchOut(batch_id=batch_id, job_ids=job_ids), 202)


async def _submit_batch(
    request: Request, services: Services, client: str
) -> tuple[UUID, list[UUID]]:
    body = await read_request(request, services.settings.batch_bytes, BatchRequest)
    return await services.jobs.submit_batch(
        await body.to_jobs(client),
        body.min_complete or len(body.items),
        cancels_rest=body.rest == "cancel",
    )


@routes.get(
    "/v1/batches/{batch_id}",
    response_model=answers.BatchProgressOut,
    responses=problem_responses(404),
)
async def batch(batch_id: Id, services: Wired, wait_seconds: Seconds = 0.0) -> Response:
    """Return the results of a batch; wait up to `wait_seconds` until it is complete."""
    parsed = parse_id(batch_id, "batch")
    progress = await services.jobs.wait_for_batch(parsed, wait_seconds)
    results, lost = await _read_results(services, progress)
    content = answers.BatchProgressOut(
        batch_id=parsed, complete=progress.is_complete, results=results, errors=lost
    )
    return as_json(content, 200)


@routes.post("/score/batch", **_SCORE_BATCH)
@routes.post("/v1/score/batch", **_SCORE_BATCH)
async def stream_batch(request: Request, services: Wired, client: Client) -> Response:
    """Score a batch over one connection: a line of JSON for every item that has ended.

    Lines have the item's `index` and come in the order in which the items end, until the batch is
    complete. Blank lines keep the connection alive. After a lost connection, read the batch by its
    id, which is in the header `Batch-Id`.
    """
    batch_id, _ = await _submit_batch(request, services, client)
    return StreamingResponse(
        _stream_lines(services, batch_id),
        media_type=NDJSON,
        headers={"Batch-Id": str(batch_id)},
    )


async def _stream_lines(services: Services, batch_id: UUID) -> AsyncIterator[str]:
    async for progress in services.jobs.follow(batch_id, None):
        results, lost = await _read_results(services, progress)
        texts = {one.index: one.model_dump_json() for one in results}
        texts |= {one.index: one.model_dump_json() for one in lost}
        lines = [texts[item.index] for item in progress.ended if item.index in texts]
        yield "".join(f"{line}\n" for line in lines) or "\n"


async def _read_results(
    services: Services, progress: BatchProgress
) -> tuple[list[answers.ResultOut], list[answers.LostOut]]:
    done = [item for item in progress.ended if item.state.has_answer]
    results: list[answers.ResultOut] = []
    for first in range(0, len(done), _RESULTS_AT_ONCE):  # other requests run in between
        results += await _results(
            services, done[first : first + _RESULTS_AT_ONCE], progress.answers
        )
    return results, [_lost(item) for item in progress.ended if not item.state.has_answer]


async def _results(
    services: Services, done: Sequence[BatchItem], known: Mapping[UUID, StoredAnswer]
) -> list[answers.ResultOut]:
    missing = [item.job_id for item in done if item.job_id not in known]
    found = {**known, **(await services.jobs.answers(missing) if missing else {})}
    return [
        answers.ResultOut.at(item.index, found[item.job_id])
        for item in done
        if item.job_id in found
    ]


def _lost(item: BatchItem) -> answers.LostOut:
    if item.error is None:
        error = answers.NoRewardOut.of(ErrorKind.CANCELLED, "the job was cancelled")
        return answers.LostOut(
            index=item.index, job_id=item.job_id, status="cancelled", error=error
        )
    error = answers.NoRewardOut.of(item.error.kind, item.error.message)
    return answers.LostOut(index=item.index, job_id=item.job_id, status="errored", error=error)
