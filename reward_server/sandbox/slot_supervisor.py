"""One slot's keeper: a small process that starts boxes, watches them and sees them dead.

It runs on the host as a script of its own (`python -I -S slot_supervisor.py FD`), with one thread
and nothing but the standard library. It lives in the slot's cgroup and on the slot's cores,
and every box inherits both. Started by root, it first makes the folders that boxes are built
from reachable in a mount space of its own and then becomes the slot's unprivileged account for
good, before any `bwrap`; an ordinary user has nothing to drop. It is the reaper of everything
below it: when it reports the end of a run, no process of that box exists any more.

The conversation over the socket: one `config` message, then for each run one request with
the descriptors [payload, stdout, stderr] and one report, with the descriptors of the
artifact and of the fetched files that there are. A `kill` message ends a run early, a closed
socket ends everything.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import marshal
import os
import resource  # noqa: F401 - wait4 wants it, and after the drop it may be out of reach
import select
import signal
import socket
import stat
import sys
import time

TYPE_CHECKING = False  # typing and dataclasses would double its memory
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MESSAGE_BYTES = 1 << 17
FOLDERS = 3  # that a program can write to, and that the launcher hands over
_FIRST_FREE = 5  # the box has its streams, the control socket and the filter below
_IMPORT_SECONDS, _ANSWER_SECONDS = 120.0, 10.0
_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36
_NEW_MOUNTS, _BIND, _RECURSIVE, _SLAVE = 0x20000, 4096, 16384, 1 << 19
_NEW_TIME = 0x80
_READ_ONLY, _NO_SUID, _NO_EXEC, _REMOUNT = 1, 2, 8, 32
DEVICES = "devices"
DEVICE_NUMBERS = {
    "null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9),
    "tty": (5, 0),
}  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)


class SupervisorReport:
    """What the keeper saw of one run; times are monotonic nanoseconds."""

    def __init__(self) -> None:
        self.launched = False
        self.start_ns = 0
        self.end_ns = 0
        self.status = 0
        self.timed_out = False
        self.killed = False
        self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0
        self.disk_full = False
        self.artifact = "absent"
        self.fetched: list[str] = []


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    result = _libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None)
    _check(result, f"mount {target}")


def _stage(root: str, sources: dict[str, str]) -> None:
    """Make host folders reachable for the unprivileged `bwrap`, in a mount space of our own."""
    _check(_libc.unshare(_NEW_MOUNTS), "unshare")
    _libc.unshare(_NEW_TIME)  # so that no file of the kernel's stands for one that boxes share
    _mount(None, "/", None, _RECURSIVE | _SLAVE)
    _mount("tmpfs", root, "tmpfs", 0, "mode=755,size=64k")
    for name, source in sources.items():
        os.mkdir(f"{root}/{name}", 0o755)
        with contextlib.suppress(FileNotFoundError):  # a task that was taken away meanwhile
            _mount(source, f"{root}/{name}", None, _BIND)
    _make_devices(f"{root}/{DEVICES}")


def _make_devices(folder: str) -> None:
    """Make devices of the slot's own: the machine's could be locked and watched by every box.

    Nothing of them can be changed, so that no program leaves even a time there for the next.
    """
    os.mkdir(folder, 0o755)
    _mount("tmpfs", folder, "tmpfs", 0, "mode=755,size=4k")
    with contextlib.suppress(PermissionError):  # root of a container, not of the machine
        for name, numbers in DEVICE_NUMBERS.items():
            os.mknod(f"{folder}/{name}", stat.S_IFCHR, os.makedev(*numbers))
            os.chmod(f"{folder}/{name}", 0o666)  # noqa: S103 - as everywhere
    _mount(None, folder, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_EXEC)


def _drop(uid: int) -> None:
    """Become an account without rights, for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # The kernel hides /proc/self from a process that changed its account, unless told so.
    _check(_libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def receive(channel: socket.socket, size: int, most_fds: int) -> tuple[bytes, list[int]]:
    """Receive a message and descriptors that no child inherits, which `recv_fds` cannot do."""
    room = socket.CMSG_SPACE(most_fds * 4)
    text, rights, _, _ = channel.recvmsg(size, room, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for _level, _kind, data in rights:
        fds += memoryview(data[: len(data) // 4 * 4]).cast("i")
    return text, fds


def _kill_children() -> None:
    """Kill what became ours when its parent died: `bwrap` may be killed half-way through."""
    with contextlib.suppress(FileNotFoundError):  # a kernel without that file
        # Not ASCII: that codec is a file, which may be out of reach after the drop.
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="utf-8") as file:
            pids = file.read().split()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


@contextlib.contextmanager
def _first_to_go() -> Iterator[None]:
    """Have what is started here taken before its keeper when memory runs out."""
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


class _LostZygoteError(OSError):
    def __str__(self) -> str:
        return "the zygote is gone"


class ColdLauncher:
    """Starts each program with a `bwrap` of its own."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.filter = base64.b64decode(config["seccomp"])
        self.child = 0

    def start(self, request: dict[str, Any], fds: list[int]) -> int:
        """Start a box and return a descriptor of its first process."""
        filter_end, filter_start = os.pipe()
        try:
            os.write(filter_start, self.filter)
            with _first_to_go():
                self.child = _spawn(request["argv"], request["environment"], [*fds, filter_end])
        finally:
            os.close(filter_start)
            os.close(filter_end)
        return os.pidfd_open(self.child)

    def reap(self, report: SupervisorReport) -> None:
        """Wait for every process below us: the first one out takes the rest with it."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                break
            _kill_children()
            if pid == self.child:
                report.status = os.waitstatus_to_exitcode(status)
            report.cpu_seconds += usage.ru_utime + usage.ru_stime
            report.peak_memory_bytes = max(report.peak_memory_bytes, usage.ru_maxrss * 1024)


class ZygoteLauncher:
    """Has programs forked by a process that imported their packages beforehand."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config["zygote"]
        self.settings = {
            "seccomp": base64.b64decode(config["seccomp"]),
            "preload": self.config["preload"],
        }
        self.channel: socket.socket | None = None
        self.child = 0
        self._ready_channel()

    def start(self, request: dict[str, Any], fds: list[int]) -> int:
        """Have a box started and return a descriptor of its first process.

        Raises:
            OSError: when the zygote does not answer; the next program gets another one.
        """
        channel = self._ready_channel()
        try:
            socket.send_fds(channel, [marshal.dumps(request["zygote"], 2)], fds)
            text, handles = receive(channel, 16, 1)
        except OSError:
            self._end()
            raise
        if text != b"begun" or not handles:
            self._end()
            raise _LostZygoteError
        return handles[0]

    def reap(self, report: SupervisorReport) -> None:
        """Hear how the box ended; it is dead by then, or dies here with its zygote."""
        ended = b""
        if self.channel is not None:
            with contextlib.suppress(OSError):
                ended = self.channel.recv(_MESSAGE_BYTES)
        if ended:
            status = marshal.loads(ended)  # noqa: S302 - no program ran in that process
            report.status, report.cpu_seconds, report.peak_memory_bytes = status
        else:
            report.status = -signal.SIGKILL
            self._end()

    def _ready_channel(self) -> socket.socket:
        if self.channel is not None:
            if not select.select([self.channel], [], [], 0)[0]:  # it says nothing unasked
                return self.channel
            self._end()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            fds = [0, 1, 2, theirs.fileno()]
            self.child = _spawn(self.config["argv"], self.config["environment"], fds)
        self.channel = ours
        ours.settimeout(_IMPORT_SECONDS)
        try:
            ours.send(marshal.dumps(self.settings, 2))
            if ours.recv(16) == b"ready":
                ours.settimeout(_ANSWER_SECONDS)
                return ours
        except OSError:
            self._end()
            raise
        self._end()
        raise _LostZygoteError

    def _end(self) -> None:
        """Kill the zygote and with it every process of its boxes."""
        if self.channel is not None:
            self.channel.close()
            self.channel = None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
                _kill_children()


def _spawn(argv: list[str], environment: dict[str, str], fds: list[int]) -> int:
    moves = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate(fds)]
    return os.posix_spawn(
        argv[0], argv, environment, file_actions=moves, setsigdef=[signal.SIGPIPE]
    )


class SlotSupervisor:
    """Runs one box at a time for the server at the other end of the channel."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        config: dict[str, Any] = json.loads(channel.recv(_MESSAGE_BYTES))
        for procs in config["cgroup_procs"]:
            _write(procs, str(os.getpid()))
        os.sched_setaffinity(0, config["cores"])
        _check(_libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
        if config["stage_root"]:
            _stage(config["stage_root"], config["stage"])
            _drop(config["uid"])
        while os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) < _FIRST_FREE:
            pass  # so that what we are sent never stands where the box wants something else
        self.boxes = ZygoteLauncher(config) if config["zygote"] else ColdLauncher(config)
        channel.send(b"ready")

    def serve(self) -> None:
        """Run boxes until the server hangs up."""
        while True:
            text, fds = receive(self.channel, _MESSAGE_BYTES, 3)
            if not text:
                return
            if text == b"kill":  # came too late: that run has ended by itself
                continue
            report, rights = self._run(json.loads(text), fds)
            try:
                socket.send_fds(self.channel, [json.dumps(vars(report)).encode()], rights)
            except BrokenPipeError:
                return
            for fd in rights:
                os.close(fd)

    def _run(self, request: dict[str, Any], fds: list[int]) -> tuple[SupervisorReport, list[int]]:
        os.sched_setaffinity(0, request["cores"])  # a wide program has its neighbours' cores too
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        report = SupervisorReport()
        folders: list[int] = []
        try:
            box = self.boxes.start(request, [*fds, theirs.fileno()])
        except OSError as error:
            os.write(fds[2], f"keeper: {error}\n".encode())
            return report, []
        finally:
            theirs.close()
            for fd in fds:
                os.close(fd)
        with ours:
            self._watch(box, ours, request, report, folders)
        os.close(box)
        self.boxes.reap(report)
        report.end_ns = time.monotonic_ns()
        left = collect(folders, request, report) if report.launched else []
        for fd in folders:
            os.close(fd)
        return report, left

    def _watch(
        self,
        box: int,
        control: socket.socket,
        request: dict[str, Any],
        report: SupervisorReport,
        folders: list[int],
    ) -> None:
        """Wait until the box ends, is to be ended, or has used up its time."""
        poll = select.poll()
        for source in (box, control.fileno(), self.channel.fileno()):
            poll.register(source, select.POLLIN)
        deadline_ns = time.monotonic_ns() + int(request["boot_seconds"] * 1e9)
        while True:
            left_ms = max(0, (deadline_ns - time.monotonic_ns()) / 1e6)
            ready = {source for source, _ in poll.poll(left_ms)}
            if control.fileno() in ready:
                self._welcome(control, report, folders)
                poll.unregister(control.fileno())
                deadline_ns = report.start_ns + int(request["wall_seconds"] * 1e9)
            if box in ready:
                return
            report.timed_out = not ready and time.monotonic_ns() >= deadline_ns
            report.killed = self.channel.fileno() in ready
            if report.timed_out or report.killed:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(box, signal.SIGKILL)
                return

    @staticmethod
    def _welcome(control: socket.socket, report: SupervisorReport, folders: list[int]) -> None:
        text, fds = receive(control, 64, FOLDERS)
        folders += fds
        if text and len(fds) == FOLDERS:
            report.start_ns = marshal.loads(text)  # noqa: S302 - sent before the program ran
            report.launched = True


def collect(folders: list[int], request: dict[str, Any], report: SupervisorReport) -> list[int]:
    """Note what the dead box has left, and open what is wanted of it: the artifact comes first."""
    for folder in folders:
        space = os.fstatvfs(folder)
        report.disk_full = report.disk_full or space.f_bavail == 0 or space.f_favail == 0
    os.chmod(f"/proc/self/fd/{folders[0]}", 0o700)  # the program may have closed it
    report.artifact, artifact, room = "unasked", None, request["artifact_bytes"]
    if request["artifact"] is not None:
        report.artifact, artifact = open_artifact(folders[0], request["artifact"], room)
    opened = [] if artifact is None else [artifact]
    for path in request["fetch"]:
        outcome, file = open_below(folders[0], path, room)
        report.fetched.append(outcome)
        if file is not None:
            room -= os.fstat(file).st_size
            opened.append(file)
    return opened


def open_below(folder: int, path: str, most_bytes: int) -> tuple[str, int | None]:
    """Open one regular file of a dead box in a folder below its work directory."""
    *parents, name = path.split("/")
    opened: list[int] = []
    try:
        for parent in parents:
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
            folder = os.open(parent, flags, dir_fd=folder)
            opened.append(folder)
            os.chmod(f"/proc/self/fd/{folder}", 0o700)
        return open_artifact(folder, name, most_bytes)
    except FileNotFoundError:
        return "absent", None
    except OSError:
        return "refused", None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def open_artifact(folder: int, name: str, most_bytes: int) -> tuple[str, int | None]:
    """Open one regular file of a dead box, following nothing."""
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return "absent", None
    except OSError:
        return "refused", None
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1 or info.st_size > most_bytes:
            return "refused", None
        path = f"/proc/self/fd/{handle}"
        if not info.st_mode & stat.S_IRUSR:
            os.chmod(path, 0o600)
        return "file", os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "refused", None
    finally:
        os.close(handle)


if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[1]), False)  # noqa: FBT003 - the name of the function says it
    SlotSupervisor(socket.socket(fileno=int(sys.argv[1]))).serve()
