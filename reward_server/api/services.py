"""The services behind the routes, and small helpers of all routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import Depends, Path, Request, Response

from reward_server.api.schemas.requests import check_key
from reward_server.errors import RequestError
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel, SecretStr

    from reward_server.api.schemas.answers import PartOut
    from reward_server.jobs.metrics import Metrics
    from reward_server.jobs.run_code import RunCodeService
    from reward_server.jobs.service import JobService
    from reward_server.prompts.service import PromptService
    from reward_server.settings import Settings
    from reward_server.store.queries import Store
    from reward_server.store.solutions.archive import Archive
    from reward_server.tasks.briefing.briefings import Briefings
    from reward_server.tasks.registry import Registry


@dataclass(frozen=True, slots=True)
class Services:
    """The services that the routes call."""

    settings: Settings
    jobs: JobService
    store: Store
    archive: Archive
    registry: Registry
    briefings: Briefings
    prompts: PromptService
    metrics: Metrics
    describe_lm: Callable[[], PartOut]
    programs: RunCodeService | None = None

    @property
    def keys(self) -> dict[str, SecretStr]:
        """Return the API keys by the name of their client."""
        named = {name: client.key for name, client in self.settings.clients.items()}
        return named if self.settings.api_key is None else {"": self.settings.api_key, **named}


async def services_of(
    request: Request,
) -> Services:  # async: FastAPI runs a plain function in a thread
    """Return the services of the application that received a request."""
    services: Services = request.app.state.services
    return services


async def check_client(request: Request) -> str:
    """Return the name of the client that sent a request.

    Raises:
        RequestError: `unauthorized`.
    """
    return check_key(request, (await services_of(request)).keys)


Wired = Annotated[Services, Depends(services_of)]
Client = Annotated[str, Depends(check_client)]
Id = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
NDJSON = "application/x-ndjson"


def as_json(content: BaseModel, status: int) -> Response:
    """Return a model as a JSON response, without validating it a second time."""
    return Response(content.model_dump_json(), status, media_type="application/json")


def lines_of(*models: str) -> dict[str, Any]:
    """Return the schema of newline-delimited JSON, each line one of these models."""
    refs = [{"$ref": f"#/components/schemas/{model}"} for model in models]
    content = refs[0] if len(refs) == 1 else {"anyOf": refs}
    return {"type": "string", "contentMediaType": NDJSON, "contentSchema": content}


def parse_id(text: str, what: str) -> UUID:
    """Parse an id in a path.

    Raises:
        RequestError: `not_found`.
    """
    try:
        return UUID(text)
    except ValueError:
        raise RequestError(ErrorKind.NOT_FOUND, f"there is no such {what}") from None
