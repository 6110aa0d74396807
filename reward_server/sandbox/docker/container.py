"""One container and the conversation with the warden in it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import marshal
import struct
from typing import TYPE_CHECKING, Any

from reward_server.sandbox.docker.engine import EngineError
from reward_server.sandbox.reporting import RunReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reward_server.sandbox.docker.engine import ContainerEngine
    from reward_server.sandbox.streams import Tail

_READY, _STARTED, _OUT, _ERR, _ARTIFACT, _FILE, _BEAT, _REPORT = b"RS12AFBE"
_BOOT_SECONDS = 60.0
_COMPLAINT_BYTES = 1 << 14
_FORMAT = 2  # read by whatever Python the image has


class Container:
    """A started container whose warden waits for the one program it will ever see."""

    def __init__(
        self,
        engine: ContainerEngine,
        container: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.container = container
        self._engine = engine
        self._reader = reader
        self._writer = writer
        self._held = bytearray()
        self._complaint = bytearray()
        self.started = asyncio.Event()
        self.artifact = bytearray()
        self._files: dict[int, bytearray] = {}
        self.cpu_seconds = 0.0

    @property
    def is_alive(self) -> bool:
        """Tell whether the warden still waits, as far as one can see from here."""
        return not self._reader.at_eof()

    @property
    def complaint(self) -> str:
        """Return what the warden or the engine said on the side; never a program's words."""
        return self._complaint.decode("utf-8", "replace")

    async def ready(self) -> None:
        """Wait until the warden waits for its program.

        Raises:
            EngineError: when it does not come to that.
        """
        try:
            async with asyncio.timeout(_BOOT_SECONDS):
                frame = await self._next()
        except TimeoutError:
            frame = None
        if frame is None or frame[0] != _READY:
            message = f"the warden did not start: {self.complaint}"
            raise EngineError(message)

    async def run(self, request: Mapping[str, Any], out: Tail, err: Tail) -> RunReport | None:
        """Have the program run, take its output, and return the report if there comes one."""
        text = marshal.dumps(dict(request), _FORMAT)
        self._writer.write(struct.pack(">I", len(text)) + text)
        while (frame := await self._next()) is not None:
            kind, content = frame
            if kind == _REPORT:
                return RunReport(**json.loads(content))
            if kind == _STARTED:
                self.started.set()
            elif kind == _ARTIFACT:
                self.artifact += content
            elif kind == _FILE:
                self._files.setdefault(content[0], bytearray()).extend(content[1:])
            elif kind == _BEAT:
                self.cpu_seconds = float(content)
            else:
                (out if kind == _OUT else err).take(content)
        return None

    def fetched(self) -> list[bytes]:
        """Return the files that were fetched, in the order they were asked for."""
        return [bytes(self._files[place]) for place in sorted(self._files)]

    def interrupt(self) -> None:
        """Ask the warden to end the run now and report."""
        if not self._writer.is_closing():
            self._writer.write(b"K")

    async def _next(self) -> tuple[int, bytes] | None:
        """Return the next frame, or nothing when the stream has ended."""
        while True:
            frame = self._cut()
            if frame is not None:
                return frame
            try:
                stream, size = struct.unpack(">B3xI", await self._reader.readexactly(8))
                chunk = await self._reader.readexactly(size)
            except (asyncio.IncompleteReadError, OSError):
                return None
            if stream == 1:
                self._held += chunk
            else:
                self._complaint += chunk
                del self._complaint[:-_COMPLAINT_BYTES]

    def _cut(self) -> tuple[int, bytes] | None:
        if len(self._held) < 5:
            return None
        kind, size = struct.unpack_from(">BI", self._held)
        if len(self._held) < 5 + size:
            return None
        content = bytes(self._held[5 : 5 + size])
        del self._held[: 5 + size]
        return kind, content

    async def remove(self) -> None:
        """Kill whatever is left of the container, and take it away.

        Raises:
            EngineError: when the engine does not do so.
        """
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        await self._engine.remove(self.container)


async def open_box(engine: ContainerEngine, config: dict[str, Any]) -> Container:
    """Make a container, start it, and wait until its warden is ready.

    Raises:
        EngineError: when it cannot be had; nothing of it is left then.
    """
    container = await engine.create(config)
    box = None
    try:
        box = Container(engine, container, *await engine.attach(container))
        await engine.start(container)
        await box.ready()
    except EngineError:
        with contextlib.suppress(EngineError):
            await (engine.remove(container) if box is None else box.remove())
        raise
    return box
