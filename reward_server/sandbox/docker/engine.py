"""The container engine, through its socket and its own library.

The library blocks, so every call runs in one of a few threads, each with a connection of its own.
The two streams of a container do not: they are a socket that the event loop reads.

Nothing is ever copied into or out of a running container, where a program could swap a path for a
link half-way. The init's code goes into a volume by way of a container that is never started; the
program goes in, and its files come out, as bytes on a stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import docker
from docker import errors

from reward_server.errors import SetupError
from reward_server.sandbox.docker import runc, volumes
from reward_server.sandbox.docker.container_config import LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reward_server.sandbox.docker.volumes import Layers

T = TypeVar("T")

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_CALL_SECONDS = 60
_API_VERSION = "1.41"  # Docker 20.10 and everything newer
_READ_AHEAD_BYTES = 1 << 18
_ATTACH = (
    "POST /containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\n"
    "Host: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n"
)
_SETTING = "REWARD_SERVER_SANDBOX__"


class EngineError(Exception):
    """A call to the engine failed; `is_missing` says that what the call names does not exist."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


@contextlib.contextmanager
def _engine_errors() -> Iterator[None]:
    """Turn what the library raises into an `EngineError`."""
    try:
        yield
    except errors.NotFound as error:
        raise EngineError(str(error), is_missing=True) from error
    except (errors.DockerException, OSError) as error:
        raise EngineError(str(error)) from error


class ContainerEngine:
    """A container engine on this machine."""

    def __init__(self, url: str | None, threads: int) -> None:
        self._url = find_engine(url)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="engine")
        self._local = threading.local()
        self._clients: list[Any] = []
        self._is_closed = False

    async def call(self, request: Callable[[Any], T]) -> T:
        """Make a request to the engine in a thread.

        Raises:
            EngineError: when it is gone, silent, or refuses.
        """
        if self._is_closed:
            message = "the engine's connections are closed"
            raise EngineError(message)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._request, request)

    def _request(self, request: Callable[[Any], T]) -> T:
        with _engine_errors():
            _probe(self._url)
            return request(self._client())

    def _client(self) -> Any:  # noqa: ANN401 - the library has no types
        if not hasattr(self._local, "client"):
            client = make_client(self._url)
            self._local.client = client
            self._clients.append(client)
        return self._local.client

    async def find_image(self, name: str) -> str:
        """Return the immutable id of an image that must exist already."""
        found = await self.call(lambda api: api.inspect_image(name))
        return str(found["Id"])

    async def check_runtime(self, runtime: str | None) -> None:
        """Make sure that the runtime has no known way out of its containers.

        Raises:
            SetupError: when it has one.
        """
        await self.call(lambda api: _check_runtime(api, runtime))

    async def install_scripts(self, image: str) -> Layers:
        """Make a volume with the box scripts, and return where the engine finds it."""
        return await self.call(lambda api: volumes.install_scripts(api, image))

    async def remove_other_versions(self, layers: Layers) -> list[str]:
        """Remove the volumes of other versions that nobody uses."""
        return await self.call(lambda api: volumes.remove_other_versions(api, layers))

    async def create(self, config: dict[str, Any]) -> str:
        """Make a container and return its id."""
        made = await self.call(lambda api: api.create_container_from_config(config))
        return str(made["Id"])

    async def attach(self, container: str) -> Stream:
        """Return the input and output of a container as one stream.

        The library offers this only as a blocking socket; a connection of our own can be read by
        the event loop.

        Raises:
            EngineError: when the engine refuses.
        """
        path = self._url.removeprefix("unix://")
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                reader, writer = await asyncio.open_unix_connection(path, limit=_READ_AHEAD_BYTES)
                writer.write(_ATTACH.format(container=container).encode())
                head = await reader.readuntil(b"\r\n\r\n")
        except (OSError, EOFError) as error:
            raise EngineError(str(error)) from error
        if not head.startswith((b"HTTP/1.1 101 ", b"HTTP/1.1 200 ")):
            writer.close()
            message = f"attaching was refused: {head[:64]!r}"
            raise EngineError(message)
        return reader, writer

    async def start(self, container: str) -> None:
        """Start a container."""
        await self.call(lambda api: api.start(container))

    async def inspect_state(self, container: str) -> dict[str, Any]:
        """Return the state of a container as the engine sees it."""
        found = await self.call(lambda api: api.inspect_container(container))
        state: dict[str, Any] = found["State"]
        return state

    async def remove(self, container: str) -> None:
        """Kill a container if it runs and remove it; one that does not exist is fine."""
        try:
            await self.call(lambda api: api.remove_container(container, v=True, force=True))
        except EngineError as error:
            if not error.is_missing and "already in progress" not in str(error):
                raise

    async def remove_stale(self, older_than_seconds: float) -> list[str]:
        """Remove containers and volumes that dead servers have left.

        A running container ends when its server's end of its input closes, so only those that do
        not run can be stale; a living server removes its own within moments.
        """
        return await self.call(lambda api: _remove_stale(api, older_than_seconds))

    def close(self) -> None:
        """Wait for calls in progress and close all connections."""
        self._is_closed = True
        self._pool.shutdown()
        for client in self._clients:
            client.close()


def explain(error: EngineError, image: str) -> str:
    """Return what is missing and what to do about it."""
    if error.is_missing:
        return f"the engine has no image {image}: run `make images`, or set {_SETTING}IMAGE"
    return (
        f"no container engine answers ({error}): install and start Docker, or name its socket in "
        f"{_SETTING}ENGINE (unix:///...), and let this account use it"
    )


def describe(url: str | None, image: str, runtime: str | None = None) -> tuple[str, str | None]:
    """Return the versions of an engine and its image, and a warning about them if there is one.

    Raises:
        SetupError: when there is no engine, no image or no safe runtime; the text names the remedy.
    """
    try:
        with _engine_errors(), contextlib.closing(make_client(url)) as client:
            version, found = client.version()["Version"], client.inspect_image(image)["Id"]
            warning = _check_runtime(client, runtime)
    except EngineError as error:
        raise SetupError(explain(error, image)) from error
    return f"{version}, {image}@{found[:23]}", warning


def _check_runtime(api: Any, runtime: str | None) -> str | None:  # noqa: ANN401
    return runc.check_version(api.version(), runtime or api.info().get("DefaultRuntime", ""))


def find_engine(url: str | None) -> str:
    """Return the address of the engine: the one named, or else the one the usual variable names.

    Raises:
        SetupError: for an engine that is not on this machine.
    """
    found = url or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not found.startswith("unix:///"):
        message = f"the engine {found} is not on this machine: set {_SETTING}ENGINE to unix:///..."
        raise SetupError(message)
    return found


def _probe(url: str) -> None:
    """Connect and hang up."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(url.removeprefix("unix://"))


def make_client(url: str | None) -> Any:  # noqa: ANN401 - the library has no types
    """Connect to an engine.

    The library keeps one open connection for every address it has ever called, and leaks one when
    nobody answers: so a plain connection comes first, and each answer ends its connection.

    Raises:
        OSError: when nobody answers.
    """
    found = find_engine(url)
    _probe(found)
    client = docker.APIClient(base_url=found, version=_API_VERSION, timeout=_CALL_SECONDS)
    client.headers["Connection"] = "close"
    return client


def _remove_stale(api: Any, older_than_seconds: float) -> list[str]:  # noqa: ANN401
    now = datetime.fromisoformat(api.info()["SystemTime"])
    states = ["created", "exited", "dead"]
    found = api.containers(all=True, filters={"label": LABEL, "status": states})
    removed = []
    for container in found:
        with contextlib.suppress(errors.NotFound):
            seen = api.inspect_container(container["Id"])
            since = max(
                datetime.fromisoformat(seen["Created"]),
                datetime.fromisoformat(seen["State"]["FinishedAt"]),
            )
            if (now - since).total_seconds() >= older_than_seconds:
                api.remove_container(container["Id"], v=True, force=True)
                removed.append(container["Id"])
    return removed + volumes.remove_stale(api, now, older_than_seconds)
