"""The application and its general routes.

A route parses a request, calls a service and formats the response; it decides nothing itself.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import platform
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST

from reward_server.api import problems
from reward_server.api.adapters import routes as adapter_routes
from reward_server.api.openapi import DocumentedApp
from reward_server.api.routes.jobs import routes as job_routes
from reward_server.api.routes.prompts import routes as prompt_routes
from reward_server.api.routes.run_code import routes as run_code_routes
from reward_server.api.routes.solutions import routes as solution_routes
from reward_server.api.schemas import answers
from reward_server.api.services import Services, Wired, as_json, check_client
from reward_server.errors import InfrastructureError
from reward_server.tasks.briefing import briefings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}}
}

open_routes = APIRouter()
routes = APIRouter()


def create_app(open_services: Callable[[], AbstractAsyncContextManager[Services]]) -> FastAPI:
    """Return the application; it opens the services at startup and closes them at shutdown."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_services() as services:
            app.state.services = services
            yield

    version = importlib.metadata.version("reward-server")
    app = DocumentedApp(title="reward-server", version=version, lifespan=lifespan)
    app.include_router(open_routes)
    guarded_routes = APIRouter(dependencies=[Depends(check_client)])
    guarded_routes.include_router(job_routes)
    guarded_routes.include_router(solution_routes)
    guarded_routes.include_router(prompt_routes)
    guarded_routes.include_router(run_code_routes)
    guarded_routes.include_router(adapter_routes)
    guarded_routes.include_router(routes)
    app.include_router(guarded_routes)
    problems.add_handlers(app)
    return app


@routes.get("/v1/tasks")
async def tasks(services: Wired) -> answers.TasksOut:
    """List the tasks that can be scored."""
    prepared = services.registry.prepared()
    return answers.TasksOut(tasks=[answers.TaskSummary.of(task) for task in prepared])


@routes.get("/v1/tasks/{task_id}", responses=problems.problem_responses(404))
async def task(
    task_id: str,
    services: Wired,
    budget: Annotated[
        int, Query(ge=briefings.MIN_BUDGET, le=briefings.MAX_BUDGET)
    ] = briefings.DEFAULT_BUDGET,
) -> answers.TaskOut:
    """Describe one task, with a briefing for a model in at most `budget` characters."""
    found = services.registry.get(task_id)
    briefing = await asyncio.to_thread(services.briefings.get, found, budget)
    return answers.TaskOut.of_briefed(found, briefing, budget)


@open_routes.get("/livez")
async def livez() -> answers.AliveOut:
    """Return whether the process runs."""
    return answers.AliveOut()


@open_routes.get(
    "/readyz",
    response_model=answers.ReadyOut,
    responses={
        503: {
            "model": answers.ReadyOut,
            "description": "The server cannot score; the body says why.",
        }
    },
)
async def readyz(services: Wired) -> Response:
    """Return whether the server can score submissions now, component by component."""
    try:
        await services.store.ping()
        database = answers.PartOut(ready=True, detail="ok")
    except InfrastructureError as error:
        database = answers.PartOut(ready=False, detail=error.message)
    kind, slots = services.settings.sandbox.kind, services.settings.slots
    detail = f"{kind}, {slots} slots" if services.jobs.worker else "programs run elsewhere"
    is_stopping = services.jobs.is_stopping
    sandbox = answers.PartOut(
        ready=not is_stopping, detail="the server is being stopped" if is_stopping else detail
    )
    content = answers.ReadyOut(
        ready=database.ready and sandbox.ready,
        database=database,
        sandbox=sandbox,
        lm=services.describe_lm(),
    )
    return as_json(content, 200 if content.ready else 503)


@open_routes.get("/metrics", response_class=Response, responses=_METRICS)
async def metrics(services: Wired) -> Response:
    """Return metrics of jobs and slots in the Prometheus format."""
    shown = services.metrics.show(services.jobs.admission, services.jobs.worker)
    return Response(shown, media_type=CONTENT_TYPE_LATEST)


@open_routes.get("/version")
async def version() -> answers.VersionOut:
    """Return the version of the server."""
    return answers.VersionOut(
        name="reward-server",
        version=importlib.metadata.version("reward-server"),
        api="v1",
        python=platform.python_version(),
    )
