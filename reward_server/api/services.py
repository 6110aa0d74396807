"""What the routes talk to, and small things that all of them need."""

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
    """What the routes talk to."""

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
        """Return whose keys open the doors."""
        named = {name: client.key for name, client in self.settings.clients.items()}
        return named if self.settings.api_key is None else {"": self.settings.api_key, **named}


async def services_of(request: Request) -> Services:  # async: a plain function costs a thread
    """Return the services of the application a request came to."""
    services: Services = request.app.state.services
    return services


async def check_client(request: Request) -> str:
    """Return who asks.

    Raises:
        RequestError: `unauthorized`.
    """
    return check_key(request, (await services_of(request)).keys)


Wired = Annotated[Services, Depends(services_of)]
Client = Annotated[str, Depends(check_client)]
Id = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
NDJSON = "application/x-ndjson"


def as_json(content: BaseModel, status: int) -> Response:
    """Return a model as it stands, without another look at it."""
    return Response(content.model_dump_json(), status, media_type="application/json")


def lines_of(*models: str) -> dict[str, Any]:
    """Return the schema of a text of which each line is one of these models as JSON."""
    refs = [{"$ref": f"#/components/schemas/{model}"} for model in models]
    content = refs[0] if len(refs) == 1 else {"anyOf": refs}
    return {"type": "string", "contentMediaType": NDJSON, "contentSchema": content}


def parse_id(text: str, what: str) -> UUID:
    """Read an id from a path.

    Raises:
        RequestError: `not_found`.
    """
    try:
        return UUID(text)
    except ValueError:
        raise RequestError(ErrorKind.NOT_FOUND, f"there is no such {what}") from None
