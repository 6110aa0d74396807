"""The two ways to start a box: a `bwrap` for each program, or a fork of a zygote.

A launcher starts one box at a time. `start` returns a pidfd of the box's first process; its death
is the death of every process in the box, because the kernel kills a process namespace with its
init. `reap` waits for that and adds what the box used to the observation.
"""

from __future__ import annotations

import base64
import contextlib
import marshal
import os
import select
import signal
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from reward_server.sandbox.inside import fd_channel
    from reward_server.sandbox.inside.run_observation import RunObservation
else:
    import fd_channel

_MESSAGE_BYTES = 1 << 17
_IMPORT_SECONDS, _ANSWER_SECONDS = 120.0, 10.0


class _LostZygoteError(OSError):
    def __str__(self) -> str:
        return "the zygote server is gone"


class ColdLauncher:
    """Starts each program with a `bwrap` and an interpreter of its own."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._filter = base64.b64decode(config["seccomp"])
        self._child = 0

    def start(self, request: dict[str, Any], fds: list[int]) -> int:
        """Start a box and return a pidfd of `bwrap`, with which the box dies."""
        filter_end, filter_start = os.pipe()
        try:
            os.write(filter_start, self._filter)  # fits into the pipe: no reader yet
            with _preferred_by_oom_killer():
                self._child = _spawn(request["argv"], request["environment"], [*fds, filter_end])
        finally:
            os.close(filter_start)
            os.close(filter_end)
        return os.pidfd_open(self._child)

    def reap(self, observation: RunObservation) -> None:
        """Wait for every process below this one, killing whatever outlives the first."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                break
            _kill_children()
            if pid == self._child:
                observation.exit_code = os.waitstatus_to_exitcode(status)
            observation.note_usage(usage)


class ZygoteLauncher:
    """Has programs forked by a process that imported their packages beforehand.

    `zygote_server` describes the messages on the channel.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config["zygote"]
        self._settings = {
            "seccomp": base64.b64decode(config["seccomp"]),
            "preload": self._config["preload"],
        }
        self._channel: socket.socket | None = None
        self._child = 0
        self._ready_channel()

    def start(self, request: dict[str, Any], fds: list[int]) -> int:
        """Have a box started and return a pidfd of its init.

        Raises:
            OSError: when the zygote server does not answer; the next program gets another one.
        """
        channel = self._ready_channel()
        try:
            socket.send_fds(channel, [marshal.dumps(request["zygote"], 2)], fds)
            text, handles = fd_channel.receive(channel, 16, 1)
        except OSError:
            self._end()
            raise
        if text != b"started" or not handles:
            self._end()
            raise _LostZygoteError
        return handles[0]

    def reap(self, observation: RunObservation) -> None:
        """Read how the box ended; it is dead by then, or dies here with the zygote server."""
        result = b""
        if self._channel is not None:
            with contextlib.suppress(OSError):
                result = self._channel.recv(_MESSAGE_BYTES)
        if result:
            exit_code, cpu_seconds, peak_bytes = marshal.loads(result)  # noqa: S302 - our own
            observation.exit_code = exit_code
            observation.cpu_seconds = cpu_seconds
            observation.peak_memory_bytes = peak_bytes
        else:
            observation.exit_code = -signal.SIGKILL
            self._end()

    def _ready_channel(self) -> socket.socket:
        if self._channel is not None:
            # The server never speaks first: something to read between runs means that it died.
            if not select.select([self._channel], [], [], 0)[0]:
                return self._channel
            self._end()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            fds = [0, 1, 2, theirs.fileno()]
            self._child = _spawn(self._config["argv"], self._config["environment"], fds)
        self._channel = ours
        ours.settimeout(_IMPORT_SECONDS)
        try:
            ours.send(marshal.dumps(self._settings, 2))
            if ours.recv(16) == b"ready":
                ours.settimeout(_ANSWER_SECONDS)
                return ours
        except OSError:
            self._end()
            raise
        self._end()
        raise _LostZygoteError

    def _end(self) -> None:
        """Kill the zygote server and with it every process of its boxes."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
                _kill_children()


def _spawn(argv: list[str], environment: dict[str, str], fds: list[int]) -> int:
    moves = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(fds)]
    return os.posix_spawn(
        argv[0], argv, environment, file_actions=moves, setsigdef=[signal.SIGPIPE]
    )


def _kill_children() -> None:
    """Kill the orphans this subreaper inherited: `bwrap` may be killed half-way through."""
    with contextlib.suppress(FileNotFoundError):  # a kernel without that file
        # Not ASCII: that codec is a file, which may be unreadable after root is dropped.
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="utf-8") as file:
            pids = file.read().split()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


@contextlib.contextmanager
def _preferred_by_oom_killer() -> Iterator[None]:
    """Have the kernel kill what is started here before the supervisor when memory runs out.

    A child inherits the score. Raising one's own score is always allowed; lowering it back is
    allowed down to the least value it has had.
    """
    path = "/proc/self/oom_score_adj"
    try:
        with open(path, encoding="utf-8") as file:
            before = file.read()
        _write(path, "1000")
    except OSError:  # a host that forbids it must not fail the program
        yield
        return
    try:
        yield
    finally:
        _write(path, before)
