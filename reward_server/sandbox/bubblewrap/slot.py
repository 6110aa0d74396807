"""The server's end of one slot: its supervisor process, its cores, its cgroup."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from reward_server.errors import InfrastructureError
from reward_server.model import MOST_FETCHED, ErrorKind
from reward_server.sandbox.bubblewrap.cgroups import make_group
from reward_server.sandbox.bubblewrap.command import DEVICE_FOLDER, DEVICE_NUMBERS, SCRIPTS
from reward_server.sandbox.inside.fd_channel import receive
from reward_server.sandbox.run_report import RunReport
from reward_server.sandbox.stall import family_cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from reward_server.sandbox.bubblewrap.cgroups import Cgroup
    from reward_server.sandbox.bubblewrap.staging import Staging

_MESSAGE_BYTES = 1 << 16
_START_SECONDS = 150.0
_END_SECONDS = 5.0
_CLEAN_SECONDS, _CLEAN_BYTES = 20.0, 1 << 20
SUPERVISOR_SCRIPT = SCRIPTS / "slot_supervisor.py"
_MOST_DESCRIPTORS = 1 + MOST_FETCHED
_Answer = tuple[RunReport, list[int]]


class Slot:
    """Runs one program at a time."""

    def __init__(
        self,
        index: int,
        cores: tuple[int, ...],
        seccomp: bytes,
        staging: Staging,
        make_zygote: Callable[[], Mapping[str, Any]] | None,
    ) -> None:
        self.index = index
        self.cores = cores
        self._seccomp = seccomp
        self._staging = staging
        self._make_zygote = make_zygote
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._report: asyncio.Future[_Answer] | None = None
        self._is_closed = False
        self._staged: set[str] = set()
        self.group = make_group(index, cores)

    @property
    def has_limits(self) -> bool:
        """Tell whether the kernel limits each box of this slot as a whole."""
        return bool(self.group.procs_files)

    def cpu_seconds(self) -> float:
        """Return the CPU time of all that this slot has run, by its cgroup or its processes."""
        counted = self.group.read().cpu_seconds
        if counted is not None or self._process is None:
            return counted or 0.0
        return family_cpu_seconds(self._process.pid)

    async def run(
        self, request: Mapping[str, Any], descriptors: list[int], deadline_seconds: float
    ) -> _Answer:
        """Have the supervisor run one box; return its report and descriptors of the files it left.

        The given descriptors are closed here once they are sent.

        Raises:
            InfrastructureError: `sandbox_unavailable` when no supervisor can be started,
                `sandbox_lost` when it died or fell silent.
        """
        loop = asyncio.get_running_loop()
        report: asyncio.Future[_Answer] = loop.create_future()
        self._report = report
        try:
            await self._send(request, descriptors)
            async with asyncio.timeout(deadline_seconds):
                return await asyncio.shield(report)
        except OSError as error:
            _discard(report)
            await self._stop()
            message = "the sandbox was lost while the program ran"
            raise InfrastructureError(ErrorKind.SANDBOX_LOST, message) from error
        except asyncio.CancelledError:
            await _finish_despite_cancellation(self._abandon(report))
            raise
        finally:
            self._report = None
            if self._channel is not None:
                loop.remove_reader(self._channel)

    async def _abandon(self, report: asyncio.Future[_Answer]) -> None:
        """End a run nobody waits for; the supervisor and its zygote stay if they answer in time."""
        if self._channel is None:  # it has not begun
            return
        self.interrupt()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.shield(report)
        except OSError:
            await self._stop()
        _discard(report)

    async def _send(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        try:
            channel = await self._ready_channel()
            asyncio.get_running_loop().add_reader(channel, self._on_report, channel)
            socket.send_fds(channel, [json.dumps(request).encode()], descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def interrupt(self) -> None:
        """Ask the supervisor to end the present run."""
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.send(b"kill")

    def _on_report(self, channel: socket.socket) -> None:
        report = self._report
        try:
            text, descriptors = receive(channel, _MESSAGE_BYTES, _MOST_DESCRIPTORS)
        except BlockingIOError:
            return
        except OSError as error:
            text, descriptors = b"", []
            if report is not None and not report.done():
                report.set_exception(error)
        if report is None or report.done():
            for descriptor in descriptors:
                os.close(descriptor)
        elif not text:
            report.set_exception(ConnectionResetError("the slot supervisor died"))
        else:
            report.set_result((RunReport(**json.loads(text)), descriptors))

    async def _ready_channel(self) -> socket.socket:
        if self._is_closed:
            message = "the sandbox has been closed"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)
        if self._channel is not None and self._process is not None:
            if self._process.poll() is None and not self._lacks_folders:
                return self._channel
            await self._stop()
        try:
            return await self._start()
        except (OSError, subprocess.SubprocessError) as error:
            await self._stop()
            message = "the sandbox could not be started"
            raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message) from error
        except asyncio.CancelledError:
            await self._stop()  # half started, it would be taken for ready
            raise

    @property
    def _lacks_folders(self) -> bool:
        is_fixed = self._staging.root is not None or self._make_zygote is not None
        return is_fixed and not self._staging.publics.keys() <= self._staged

    async def _start(self) -> socket.socket:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)  # noqa: FBT003 - the name of the method says it
        with theirs:
            self._process = _spawn_supervisor(theirs.fileno())
        self._channel.send(json.dumps(self._config()).encode())
        async with asyncio.timeout(_START_SECONDS):
            answer = await asyncio.get_running_loop().sock_recv(self._channel, 16)
        if answer != b"ready":
            message = "the slot supervisor died at its start"
            raise OSError(message)
        self.group.settle()
        return self._channel

    def _config(self) -> dict[str, Any]:
        staging = self._staging
        self._staged = set(staging.publics)
        return {
            "cores": list(self.cores),
            "cgroup_procs": list(self.group.procs_files),
            "seccomp": base64.b64encode(self._seccomp).decode(),
            "stage_root": staging.root,
            "stage": {**staging.common, **staging.publics},
            "device_folder": f"{staging.root}/{DEVICE_FOLDER}",
            "device_numbers": DEVICE_NUMBERS,
            "uid": staging.first_uid + self.index,
            "zygote": self._make_zygote() if self._make_zygote else None,
        }

    async def start(self) -> None:
        """Start the supervisor now instead of at the first program."""
        await self._ready_channel()

    async def until_clean(self) -> None:
        """Wait until the kernel has freed what the previous box kept in its files.

        The kernel tears a mount or IPC namespace down some time after the death of its last
        process, and memory that is not freed yet would count against the next program.

        Raises:
            InfrastructureError: `sandbox_unavailable` when it takes too long.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + _CLEAN_SECONDS
        while self.group.leftover_bytes() > _CLEAN_BYTES:
            if clock() > deadline:
                message = "the kernel has not freed the files of the previous box"
                raise InfrastructureError(ErrorKind.SANDBOX_UNAVAILABLE, message)
            await asyncio.sleep(0.002)

    async def _stop(self) -> None:
        """Stop the supervisor, which kills its box first; the next run starts a new one."""
        process, channel = self._process, self._channel
        self._process = self._channel = None
        if channel is not None:  # before it is closed: its number may be reused at once
            asyncio.get_running_loop().remove_reader(channel)
            channel.close()
        if process is not None:
            await asyncio.shield(asyncio.to_thread(_await_end, process, self.group))

    async def close(self) -> None:
        """Stop the supervisor and remove its cgroup."""
        self._is_closed = True
        if self._report is not None and not self._report.done():
            self._report.set_exception(ConnectionResetError("the sandbox was closed"))
        await self._stop()
        self.group.remove()


def _spawn_supervisor(channel: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", SUPERVISOR_SCRIPT, str(channel)],
        pass_fds=[channel],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


async def _finish_despite_cancellation(work: Coroutine[Any, Any, None]) -> None:
    """Finish work that is bounded in time, however often the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


def _discard(report: asyncio.Future[_Answer]) -> None:
    """Close the descriptors of an answer that nobody reads."""
    if report.done() and not report.cancelled() and report.exception() is None:
        for descriptor in report.result()[1]:
            os.close(descriptor)


def _await_end(process: subprocess.Popen[bytes], group: Cgroup) -> None:
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    group.drain()
