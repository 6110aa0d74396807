"""One container and the protocol with the init in it (`inside/container_init` describes it).

The engine multiplexes a container's two output streams: eight bytes of header before each chunk,
the stream's number in the first and the chunk's length in the last four. Stream 1 carries the
init's frames, cut anywhere; stream 2 carries what the init or the engine says when one fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import marshal
import struct
from typing import TYPE_CHECKING, Any

from reward_server.sandbox.docker.engine import EngineError
from reward_server.sandbox.run_report import RunReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reward_server.sandbox.docker.engine import ContainerEngine
    from reward_server.sandbox.output import Tail

_READY, _STARTED, _OUT, _ERR, _ARTIFACT, _FILE, _HEARTBEAT, _REPORT = b"RS12AFBE"
_BOOT_SECONDS = 60.0
_ERROR_BYTES = 1 << 14
_FORMAT = 2  # of marshal: any Python that an image may have reads it


class Container:
    """A started container whose init waits for the one program it will ever run."""

    def __init__(
        self,
        engine: ContainerEngine,
        container_id: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.container_id = container_id
        self._engine = engine
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()
        self._errors = bytearray()
        self.started = asyncio.Event()
        self.artifact = bytearray()
        self._files: dict[int, bytearray] = {}
        self.cpu_seconds = 0.0

    @property
    def is_alive(self) -> bool:
        """Tell whether the init still waits, as far as its stream shows."""
        return not self._reader.at_eof()

    @property
    def errors(self) -> str:
        """Return what the init or the engine wrote to the error stream; never program output."""
        return self._errors.decode("utf-8", "replace")

    async def ready(self) -> None:
        """Wait until the init waits for its program.

        Raises:
            EngineError: when it does not get there.
        """
        try:
            async with asyncio.timeout(_BOOT_SECONDS):
                frame = await self._next_frame()
        except TimeoutError:
            frame = None
        if frame is None or frame[0] != _READY:
            message = f"the container init did not start: {self.errors}"
            raise EngineError(message)

    async def run(self, request: Mapping[str, Any], out: Tail, err: Tail) -> RunReport | None:
        """Run the program, pass on its output, and return the report if one arrives."""
        text = marshal.dumps(dict(request), _FORMAT)
        self._writer.write(struct.pack(">I", len(text)) + text)
        while (frame := await self._next_frame()) is not None:
            kind, content = frame
            if kind == _REPORT:
                return RunReport(**json.loads(content))
            if kind == _STARTED:
                self.started.set()
            elif kind == _ARTIFACT:
                self.artifact += content
            elif kind == _FILE:
                self._files.setdefault(content[0], bytearray()).extend(content[1:])
            elif kind == _HEARTBEAT:
                self.cpu_seconds = float(content)
            else:
                (out if kind == _OUT else err).take(content)
        return None

    @property
    def file_contents(self) -> list[bytes]:
        """Return the requested files that arrived, in the order of the request."""
        return [bytes(self._files[index]) for index in sorted(self._files)]

    def interrupt(self) -> None:
        """Ask the init to end the run now and report."""
        if not self._writer.is_closing():
            self._writer.write(b"K")

    async def _next_frame(self) -> tuple[int, bytes] | None:
        """Return the next frame, or None when the stream has ended."""
        while True:
            frame = self._take_frame()
            if frame is not None:
                return frame
            try:
                stream, size = struct.unpack(">B3xI", await self._reader.readexactly(8))
                chunk = await self._reader.readexactly(size)
            except (asyncio.IncompleteReadError, OSError):
                return None
            if stream == 1:
                self._buffer += chunk
            else:
                self._errors += chunk
                del self._errors[:-_ERROR_BYTES]

    def _take_frame(self) -> tuple[int, bytes] | None:
        if len(self._buffer) < 5:
            return None
        kind, size = struct.unpack_from(">BI", self._buffer)
        if len(self._buffer) < 5 + size:
            return None
        content = bytes(self._buffer[5 : 5 + size])
        del self._buffer[: 5 + size]
        return kind, content

    async def remove(self) -> None:
        """Kill whatever is left of the container, and remove it.

        Raises:
            EngineError: when the engine fails to.
        """
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        await self._engine.remove(self.container_id)


async def open_container(engine: ContainerEngine, config: dict[str, Any]) -> Container:
    """Make a container, start it, and wait until its init is ready.

    Attaching comes before the start: what the init writes first would be lost otherwise.

    Raises:
        EngineError: when that fails; nothing of the container is left then.
    """
    container_id = await engine.create(config)
    container = None
    try:
        container = Container(engine, container_id, *await engine.attach(container_id))
        await engine.start(container_id)
        await container.ready()
    except EngineError:
        with contextlib.suppress(EngineError):
            await (engine.remove(container_id) if container is None else container.remove())
        raise
    return container
