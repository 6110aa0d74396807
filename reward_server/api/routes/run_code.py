"""SandboxFusion's `POST /run_code`: runs a bare program and returns its output and files.

Fields and statuses are those of SandboxFusion, so its clients work unchanged. The only addition is
`run_result.error_kind`, which distinguishes exhausted memory from a crash. The server never reports
its own failure as a result: veRL turns `SandboxError` into a score of 0, but retries after a 504.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from reward_server.api.problems import HttpError, problem_responses
from reward_server.api.schemas.requests import WHOLE, describe_body, read_request
from reward_server.api.services import Client, Wired, as_json
from reward_server.errors import InfrastructureError, RequestError
from reward_server.jobs.run_code import AdHocRequest, NoResultError
from reward_server.model import MOST_FETCHED, AdHocProgram, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from reward_server.model import Execution

routes = APIRouter()

_MOST_FILES = 1024
_LONGEST_NAME_BYTES = 200
_QUEUE_SECONDS = 8.0  # in addition to compile_timeout; veRL's client hangs up two seconds later
_KILLED = 137
_CLIENT_CLOSED_REQUEST = 499
_LONG = 1 << 18  # longer responses are serialized in a thread
_TEXTS = {
    ErrorKind.OOM: "the program used more memory than it may",
    ErrorKind.DISK_LIMIT: "the program filled its work directory",
    ErrorKind.PIDS_LIMIT: "the program started more processes than it may",
    ErrorKind.OUTPUT_LIMIT: "the program printed more than it may",
    ErrorKind.TIMEOUT: "the program did not finish within run_timeout",
    ErrorKind.NONZERO_EXIT: "the program ended with an error",
}


def _is_unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        message = "is no valid Unicode"
        raise ValueError(message) from None
    return text


Text = Annotated[str, AfterValidator(_is_unicode)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Path = Annotated[Text, Field(min_length=1, max_length=_LONGEST_NAME_BYTES)]


class RunCodeRequest(BaseModel):
    """A Python program, its input, and the files to return.

    Paths are relative to its work directory. As in SandboxFusion, files without content are left
    out, and unknown fields are ignored.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    code: Text
    language: Literal["python"]
    compile_timeout: Seconds = 10.0
    run_timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 10.0
    memory_limit_MB: Annotated[int, Field(lt=1 << 32), WHOLE] = -1  # noqa: N815 - SandboxFusion's
    stdin: Text | None = None
    files: Annotated[dict[Path, str | None], Field(max_length=_MOST_FILES)] = {}
    fetch_files: Annotated[list[Path], Field(max_length=MOST_FETCHED)] = []

    @field_validator("language", mode="before")
    @classmethod
    def _is_python(cls, language: object) -> object:
        if language != "python":
            message = "only python is run here"
            raise ValueError(message)
        return language

    def program(self) -> AdHocProgram:
        """Return the program to run.

        Raises:
            RequestError: `invalid_request` for a path or a content that cannot be used.
        """
        given = {_locate(name): text for name, text in self.files.items() if text is not None}
        _check_tree(given)
        return AdHocProgram(
            code=self.code,
            stdin=(self.stdin or "").encode(),
            files={name: _decode(name, text) for name, text in given.items()},
            fetch=tuple(dict.fromkeys(map(_locate, self.fetch_files))),
        )

    def limits(self) -> AdHocRequest:
        """Return what the program may use, and how long it may wait for a slot."""
        return AdHocRequest(
            wall_seconds=self.run_timeout,
            memory_bytes=self.memory_limit_MB << 20 if self.memory_limit_MB > 0 else None,
            max_wait_seconds=self.compile_timeout + _QUEUE_SECONDS,
        )


class CommandOut(BaseModel):
    """How the program ended; `error_kind` says why it failed."""

    status: Literal["Finished", "TimeLimitExceeded"]
    execution_time: float | None
    return_code: int | None
    stdout: str | None
    stderr: str | None
    error_kind: ErrorKind | None


class RunCodeOut(BaseModel):
    """SandboxFusion's response; Python is not compiled and boxes have no names."""

    status: Literal["Success", "Failed"]
    message: str
    compile_result: CommandOut | None
    run_result: CommandOut | None
    executor_pod_name: str | None
    files: dict[str, str]


@routes.post(
    "/run_code",
    response_model=RunCodeOut,
    responses=problem_responses(429, 504),
    openapi_extra=describe_body(RunCodeRequest),
)
async def run_code(request: Request, services: Wired, client: Client) -> Response:
    """Run a bare Python program in a box of its own; the server stores nothing of it.

    The response is sent when the program has ended; closing the connection ends the program. A 504
    means that no slot was free in time or that the box was lost: repeat the request.
    """
    del client  # the dependency checks the key; shares apply to jobs only
    if services.programs is None:
        message = "this process takes jobs in for workers elsewhere and runs no programs itself"
        raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)
    body = await read_request(request, services.settings.run_code.body_bytes, RunCodeRequest)
    program = await asyncio.to_thread(body.program) if body.files else body.program()
    running = services.programs.run(program, body.limits())
    try:
        execution = await _while_connected(request, running)
    except NoResultError as error:
        raise HttpError(504, error.message, error.kind) from error
    if execution is None:
        return Response(status_code=_CLIENT_CLOSED_REQUEST)
    if execution.files or len(execution.stdout_tail) + len(execution.stderr_tail) > _LONG:
        return await asyncio.to_thread(_respond, body, execution)
    return _respond(body, execution)


def _respond(body: RunCodeRequest, execution: Execution) -> Response:
    return as_json(_build_result(body, execution), 200)


async def _while_connected(
    request: Request, work: Coroutine[Any, Any, Execution]
) -> Execution | None:
    """Await some work, and cancel it when the client hangs up, which also ends its box."""
    running = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait((running, disconnected), return_when=asyncio.FIRST_COMPLETED)
        return running.result() if running.done() else None
    finally:
        disconnected.cancel()
        running.cancel()
        await asyncio.wait((running, disconnected))


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _build_result(body: RunCodeRequest, execution: Execution) -> RunCodeOut:
    failure = execution.failure
    kind = None if failure is None else failure.kind
    refused = "".join(
        f"; {name} is not a regular file of an allowed size" for name in execution.refused
    )
    message = ("" if kind is None else f"{kind.value}: {_TEXTS[kind]}") + refused
    is_late = kind is ErrorKind.TIMEOUT
    return RunCodeOut(
        status="Success" if kind is None else "Failed",
        message=message.removeprefix("; "),
        compile_result=None,
        run_result=CommandOut(
            status="TimeLimitExceeded" if is_late else "Finished",
            execution_time=execution.duration_seconds,
            return_code=None if is_late else _return_code(execution),
            stdout=execution.stdout_tail,
            stderr=execution.stderr_tail,
            error_kind=kind,
        ),
        executor_pod_name=None,
        files=_encode(body.fetch_files, execution.files),
    )


def _encode(names: list[str], found: Mapping[str, bytes]) -> dict[str, str]:
    """Return the fetched files by the names in the request."""
    paths = {name: _locate(name) for name in names}
    return {
        name: base64.b64encode(found[path]).decode()
        for name, path in paths.items()
        if path in found
    }


def _return_code(execution: Execution) -> int:
    """Return the exit code; a program that a limit ended gets the code of a killed one."""
    code = execution.exit_code or 0
    return _KILLED if code < 0 or (code == 0 and execution.failure is not None) else code


def _locate(name: str) -> str:
    """Return the normalised form of a path below the work directory.

    Raises:
        RequestError: `invalid_request` for a path that leads out of it.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    is_odd = name[0] == "/" or name[-1] == "/" or ".." in parts or "\0" in name or not parts
    if is_odd or len(name.encode()) > _LONGEST_NAME_BYTES:
        message = f"files and fetch_files are paths below the work directory, not {name[:80]!r}"
        raise RequestError(ErrorKind.INVALID_REQUEST, message)
    return "/".join(parts)


def _check_tree(names: dict[str, str]) -> None:
    """Refuse a file whose path needs another file to be a folder."""
    for name in names:
        parts = name.split("/")
        above = ("/".join(parts[:length]) for length in range(1, len(parts)))
        if any(folder in names for folder in above):
            message = f"files: {name[:80]!r} lies below a file"
            raise RequestError(ErrorKind.INVALID_REQUEST, message)


def _decode(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        message = f"files: the content of {name[:80]!r} is not base64"
        raise RequestError(ErrorKind.INVALID_REQUEST, message) from None
