"""Requests: their size is limited before they are read, their content is validated strictly."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from reward_server.api.problems import HttpError
from reward_server.errors import RequestError
from reward_server.model import ErrorKind, Priority, PromptKind, Submission
from reward_server.store.values import NewJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request
    from pydantic import SecretStr

_LONGEST_WAIT_SECONDS = 86_400
_DISCARDED_BYTES = 64 << 20
_MOST_ITEMS = 10_000
_LONG_BYTES = 1 << 16
_FEW_ITEMS = 50
_Model = TypeVar("_Model", bound=BaseModel)


def _any_text(value: object) -> str:
    if not isinstance(value, str):
        message = "must be a string"
        raise ValueError(message)  # noqa: TRY004 - pydantic turns ValueError into a 422
    return value


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


AnyText = Annotated[str, PlainValidator(_any_text), WithJsonSchema({"type": "string"})]
"""Any text of a model, also invalid Unicode: the pipeline decides what to do with it."""

Name = Annotated[str, Field(min_length=1, max_length=256)]
SolutionId = Annotated[
    str, Field(min_length=36, max_length=36, json_schema_extra={"format": "uuid"})
]
WHOLE = BeforeValidator(_whole)
"""Accepts 3.0 as an integer, as JSON Schema does; place it after the bounds."""

Step = Annotated[int, Field(ge=0, le=(1 << 63) - 1), WHOLE]
WallSeconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


_ONE_SOURCE: dict[str, Any] = {
    "oneOf": [
        {"required": [one], "properties": {one: {"type": "string"}, other: {"type": "null"}}}
        for one, other in (("completion", "code"), ("code", "completion"))
    ]
}


class JobRequest(BaseModel):
    """One submission to score; exactly one of `completion` and `code`."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, json_schema_extra=_ONE_SOURCE
    )

    task_id: Name
    completion: AnyText | None = None
    code: AnyText | None = None
    run_id: Name = "default"
    step: Step | None = None
    sample_id: Name | None = None
    idempotency_key: Name | None = None
    parent_id: SolutionId | None = None
    prompt_kind: Literal["scratch", "improve"] = "scratch"
    priority: Literal["training", "evaluation"] = "training"
    wall_seconds: WallSeconds | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.completion is None) == (self.code is None):
            message = "exactly one of completion and code is needed"
            raise ValueError(message)
        return self

    def submission(self) -> Submission:
        """Return the submission for the pipeline."""
        same: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(Submission)}
        return Submission(**same | {"prompt_kind": PromptKind(self.prompt_kind)})

    def digest(self) -> str:
        """Return a digest of the content; priority and waiting time are not part of it."""
        content = self.model_dump(exclude={"idempotency_key", "wait_seconds", "priority"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_job(self, client: str) -> NewJob:
        """Return the job for the job service."""
        return NewJob(
            submission=self.submission(),
            body_digest=self.digest(),
            idempotency_key=self.idempotency_key,
            priority=Priority[self.priority.upper()],
            client=client,
        )


class ScoreRequest(JobRequest):
    """One submission to score, and how long to wait for the answer."""

    wait_seconds: (
        Annotated[float, Field(ge=0, le=_LONGEST_WAIT_SECONDS, allow_inf_nan=False)] | None
    ) = None


class BatchRequest(BaseModel):
    """Submissions to wait for together, and how many results complete the batch."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    items: Annotated[list[JobRequest], Field(min_length=1, max_length=_MOST_ITEMS)]
    min_complete: Annotated[int, Field(ge=1), WHOLE] | None = None
    rest: Literal["continue", "cancel"] = "continue"

    @model_validator(mode="after")
    def _can_be_complete(self) -> Self:
        if self.min_complete is not None and self.min_complete > len(self.items):
            message = "min_complete is more than there are items"
            raise ValueError(message)
        return self

    async def to_jobs(self, client: str) -> list[NewJob]:
        """Return the job of every item; many are converted in a thread."""

        def read() -> list[NewJob]:
            return [item.to_job(client) for item in self.items]

        return read() if len(self.items) < _FEW_ITEMS else await asyncio.to_thread(read)


class WaitRequest(BaseModel):
    """Jobs to wait for until the first one ends."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    job_ids: Annotated[list[Name], Field(min_length=1, max_length=_MOST_ITEMS)]
    wait_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0


class CancelRequest(BaseModel):
    """The steps of a run to cancel."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    run_id: Name
    up_to_step: Step


_Submission = TypeVar("_Submission", bound=JobRequest)
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same as `idempotency_key` in the body: a repetition joins the first.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 256},
}


def describe_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI part of a route that reads its body itself.

    `openapi.py` moves the models from `x-models` to the shared components.
    """
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    name, parts = model.__name__, schema.pop("$defs", {})
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    body = {"required": True, "content": content}
    return {"requestBody": body, "x-models": {**parts, name: schema}}


def describe_submission(model: type[BaseModel]) -> dict[str, Any]:
    """Return the same for a body whose idempotency key may be in a header."""
    return {**describe_body(model), "parameters": [_IDEMPOTENCY_KEY]}


def check_key(request: Request, keys: Mapping[str, SecretStr]) -> str:
    """Return the client whose API key a request carries; empty if the server has no keys.

    Raises:
        RequestError: `unauthorized`, without detail.
    """
    given = _given_key(request)
    clients = [
        client
        for client, key in keys.items()
        if hmac.compare_digest(given, key.get_secret_value().encode())
    ]
    if keys and not clients:
        raise RequestError(ErrorKind.UNAUTHORIZED, "unauthorized")
    return clients[0] if clients else ""


def _given_key(request: Request) -> bytes:
    """Return the API key of a request.

    Some trainers can only be given a URL: their HTTP client turns `http://:KEY@host` into Basic
    authentication. ROLL has a header of its own.
    """
    headers = request.headers
    given = headers.get("authorization") or headers.get("xrl-authorization") or ""
    scheme, _, rest = given.partition(" ")
    if scheme == "Basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except ValueError:
            return b""
    return rest.encode() if scheme == "Bearer" else b""


async def read_submission(
    request: Request, most_bytes: int, model: type[_Submission]
) -> _Submission:
    """Read and validate a submission, whose idempotency key may be in a header.

    Raises:
        RequestError: `invalid_request`.
        HttpError: 413 for a large body, 415 for another content type.
    """
    parsed = await read_request(request, most_bytes, model)
    return _with_header_key(parsed, request.headers.get("idempotency-key"))


async def read_request(request: Request, most_bytes: int, model: type[_Model]) -> _Model:
    """Read and validate a JSON body, a long one in a thread.

    Raises:
        RequestError: `invalid_request`.
        HttpError: 413 for a large body, 415 for another content type.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        message = "the body must be JSON, with Content-Type: application/json"
        raise HttpError(415, message)
    body = await _read(request, most_bytes)
    if len(body) < _LONG_BYTES:
        return _check(body, model)
    return await asyncio.to_thread(_check, body, model)


def _check(body: bytes, model: type[_Model]) -> _Model:
    content = _parse(body)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        _refuse("; ".join(_explain(problem) for problem in error.errors()[:5]))


async def _read(request: Request, most_bytes: int) -> bytes:
    announced = request.headers.get("content-length", "0")
    length = int(announced) if announced.isdigit() else _DISCARDED_BYTES + 1
    if length > most_bytes:
        _too_large(most_bytes, closes=length > _DISCARDED_BYTES)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            _too_large(most_bytes, closes=True)
    return bytes(body)


def _parse(body: bytes) -> object:
    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) != len(pairs):
            _refuse("a key stands twice in the body")
        return content

    def no_constant(name: str) -> NoReturn:
        _refuse(f"{name} is not JSON")

    try:
        return json.loads(
            body.decode(), object_pairs_hook=no_duplicates, parse_constant=no_constant
        )
    except (ValueError, RecursionError):
        _refuse("the body is not JSON")


def _with_header_key(parsed: _Submission, key: str | None) -> _Submission:
    if key is None:
        return parsed
    if not 1 <= len(key) <= 256:
        _refuse("the Idempotency-Key header must have 1 to 256 characters")
    if parsed.idempotency_key not in (None, key):
        _refuse("the Idempotency-Key header and idempotency_key differ")
    return parsed.model_copy(update={"idempotency_key": key})


def _explain(problem: Any) -> str:  # noqa: ANN401 - pydantic's own shape
    where = ".".join(str(part) for part in problem["loc"]) or "body"
    where = where[:80].encode("utf-8", "backslashreplace").decode()  # a key may be invalid Unicode
    return f"{where}: {problem['msg']}"


def _refuse(message: str) -> NoReturn:
    raise RequestError(ErrorKind.INVALID_REQUEST, message)


def _too_large(most_bytes: int, *, closes: bool) -> NoReturn:
    """Refuse a body; close the connection instead of reading a very long or endless one."""
    message = f"the body is larger than {most_bytes} bytes"
    raise HttpError(413, message, ErrorKind.TOO_LARGE, closes=closes)
