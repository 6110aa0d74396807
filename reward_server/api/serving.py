"""Runs the HTTP server and shuts it down in order.

After the first signal the server refuses new jobs and releases all waiting requests, but still
responds while running programs finish; then it closes its socket. A second signal ends that early.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from socket import socket
    from types import FrameType

    from fastapi import FastAPI

    from reward_server.api.services import Services

_LAST_ANSWERS_SECONDS = 10
_KEEP_ALIVE_SECONDS = 120


def serve(app: FastAPI, host: str, port: int) -> None:
    """Serve an application until a signal arrives."""
    raise_open_files()
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
    )
    server = _Server(config, app)
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(3)


def raise_open_files() -> int:
    """Raise the limit of open files to its maximum, and return it.

    Every waiting client holds one; programs have a limit of their own.
    """
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if least != most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start as usual, and remember the event loop."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin an orderly stop at the first signal, and end it at the second."""
        if not self.started or self._loop is None or self.should_exit:
            super().handle_exit(sig, frame)
        else:
            self._loop.call_soon_threadsafe(self._stop, sig)

    def _stop(self, sig: int) -> None:
        if self._stopping is not None:
            self._stopping.cancel()
            return
        services: Services = self._app.state.services
        self._stopping = asyncio.create_task(services.jobs.stop())
        self._stopping.add_done_callback(lambda _: super(_Server, self).handle_exit(sig, None))
