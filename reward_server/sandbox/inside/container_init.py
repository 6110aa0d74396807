"""The first process of a container: waits for one program, sees it dead, tells what happened.

It is to a container what the keeper is to a bubblewrap box, and it is trusted: it runs under the
program's account (a container without capabilities has only one) and must therefore be out of
its reach. As the first process of its space it takes no signal it did not ask for; it is not
dumpable, so that its memory and descriptors are closed to the program; the filter refuses to
change another process's limits. The program is started anew by `launcher`, not forked from here,
so that nothing of this process's memory is in it.

The conversation: the server sends one request on standard input (and a byte more to end the run
early); frames come back on standard output, each a kind, a length and that many bytes. The
program writes to pipes of its own and cannot make a frame. Closed input means that the server is
gone: the box ends at once. Nothing is copied into or out of a running container.
"""

import contextlib
import ctypes
import json
import marshal
import os
import select
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))  # -I leaves it out

import slot_supervisor

_SET_DUMPABLE, _SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 4, 38, 22, 2
_CHUNK_BYTES = 1 << 16
_HELD_BYTES = 1 << 18
_IDLE_SECONDS = 3600.0
_READY, _STARTED, _OUT, _ERR, _ARTIFACT, _FILE, _BEAT, _REPORT = b"RS12AFBE"
_ROOT = "/sys/fs/cgroup/"
_COUNTERS = {  # where the kernel counts: both layouts, whichever is there
    "oom_kills": (("memory/memory.oom_control", "oom_kill"), ("memory.events", "oom_kill")),
    "processes_refused": (("pids/pids.events", "max"), ("pids.events", "max")),
    "cpu_ns": (("cpuacct/cpuacct.usage", None), ("cpu,cpuacct/cpuacct.usage", None)),
    "cpu_us": (("cpu.stat", "usage_usec"),),
    "peak_bytes": (("memory/memory.max_usage_in_bytes", None), ("memory.peak", None)),
}


class _Instructions(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("first", ctypes.c_char_p))


def _control(option, *arguments):
    padded = [*arguments, 0, 0, 0, 0][:4]
    result = slot_supervisor._libc.prctl(option, *padded)  # noqa: SLF001 - one binding is enough
    if result != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _install(steps):
    """Give this process, and with it all that follow, the filter of system calls."""
    program = _Instructions(len(steps) // 8, steps)
    _control(_SET_NO_NEW_PRIVILEGES, 1)
    _control(_SET_SECCOMP, _FILTER, ctypes.byref(program))


class Counters:
    """What the kernel has counted for this container; files are held open from the start."""

    def __init__(self):
        self._files = {}
        for name, places in _COUNTERS.items():
            for path, field in places:
                with contextlib.suppress(OSError):
                    self._files[name] = os.open(_ROOT + path, os.O_RDONLY | os.O_CLOEXEC), field
                    break

    def read(self, name):
        """Return one counter, or nothing where this kernel does not tell."""
        if name not in self._files:
            return None
        descriptor, field = self._files[name]
        text = os.pread(descriptor, 4096, 0).decode()
        if field is None:
            return int(text)
        fields = dict(line.split(" ", 1) for line in text.splitlines())
        return int(fields.get(field, 0))

    def cpu_seconds(self):
        """Return the processor time spent so far, or nothing."""
        nanoseconds, microseconds = self.read("cpu_ns"), self.read("cpu_us")
        if nanoseconds is not None:
            return nanoseconds / 1e9
        return None if microseconds is None else microseconds / 1e6


class StreamRelay:
    """Standard output: frames that wait here are bounded, and no writing ever blocks a watch."""

    def __init__(self):
        self._held = bytearray()
        os.set_blocking(1, False)

    @property
    def is_full(self):
        """Tell whether the program's output has to wait in its pipe."""
        return len(self._held) >= _HELD_BYTES

    @property
    def waits(self):
        """Tell whether something is still to be sent."""
        return bool(self._held)

    def put(self, kind, content=b""):
        """Queue one frame."""
        self._held += struct.pack(">BI", kind, len(content))
        self._held += content

    def push(self):
        """Send what can be sent now."""
        with contextlib.suppress(BlockingIOError):
            while self._held:
                del self._held[: os.write(1, self._held[:_CHUNK_BYTES])]

    def flush(self):
        """Send everything, however long that takes; for when nothing is left to watch."""
        while self._held:
            select.select([], [1], [])
            self.push()


class InitReport:
    """What the warden saw of one run, as the server reads it; times are monotonic nanoseconds."""

    def __init__(self):
        self.launched = False
        self.start_ns = self.end_ns = 0
        self.status = 0
        self.timed_out = self.killed = False
        self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0
        self.oom_kills = self.processes_refused = 0
        self.disk_full = False
        self.artifact = "absent"
        self.fetched = []


class ProgramRun:
    """One program, from its request to its report."""

    def __init__(self, request, relay, counters):
        self._request = request
        self._relay = relay
        self._counters = counters
        self._folders = []
        self._child = None
        self._ended = False
        self._next_beat = 0.0
        self.report = InitReport()

    def carry_out(self):
        """Start the program, watch it, see everything dead and tell about it."""
        spent = self._counters.cpu_seconds()
        box = self._start()
        with box:
            self._watch(box)
        self._kill_all()
        self.report.end_ns = time.monotonic_ns()
        for kind, pipe in self._pipes.items():
            self._drain(kind, pipe)
        self._count(spent)
        if self.report.launched:
            self._send_left(slot_supervisor.collect(self._folders, self._request, self.report))
        self._relay.put(_REPORT, json.dumps(vars(self.report)).encode())
        self._relay.flush()

    def _start(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        payload = os.memfd_create("payload", os.MFD_CLOEXEC)
        with os.fdopen(os.dup(payload), "wb") as file:
            file.write(self._request.pop("payload"))
        os.lseek(payload, 0, os.SEEK_SET)
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        self._pipes = {_OUT: out, _ERR: err}
        for pipe in (out, err):
            os.set_blocking(pipe, False)
        wanted = enumerate([payload, out_end, err_end, theirs.fileno()])
        argv = self._request["argv"]
        self._child = os.posix_spawn(
            argv[0],
            argv,
            self._request["environment"],
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in wanted],
            setsigdef=[signal.SIGPIPE, signal.SIGINT],
            setsid=True,
        )
        theirs.close()
        for descriptor in (payload, out_end, err_end):
            os.close(descriptor)
        return ours

    def _watch(self, box):
        """Wait until the program ends, is to be ended, or has used up its time."""
        deadline_ns = time.monotonic_ns() + int(self._request["boot_seconds"] * 1e9)
        while not self._ended:
            left_seconds = (deadline_ns - time.monotonic_ns()) / 1e9
            if left_seconds <= 0:
                self.report.timed_out = True
                return
            ready = self._wait(box, min(left_seconds, self._beat()))
            if _WAKE[0] in ready:
                os.read(_WAKE[0], _CHUNK_BYTES)
            if box in ready:
                self._welcome(box)
                if not self.report.launched:
                    return
                deadline_ns = self.report.start_ns + int(self._request["wall_seconds"] * 1e9)
            self._relay.push()
            for kind, pipe in self._pipes.items():
                if pipe in ready and not self._relay.is_full:
                    self._take(kind, pipe)
            if 0 in ready:
                self._hear()
                return
            self._reap(os.WNOHANG)

    def _beat(self):
        """Tell how much was computed so far, where the server wants to know, and when again."""
        pause = self._request["beat_seconds"]
        if not pause:
            return _IDLE_SECONDS
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + pause
            self._relay.put(_BEAT, str(self._counters.cpu_seconds() or 0.0).encode())
            self._relay.push()
        return self._next_beat - now

    def _wait(self, box, seconds):
        sources = [0, _WAKE[0]]
        if not self.report.launched:
            sources.append(box)
        if not self._relay.is_full:
            sources += [pipe for pipe in self._pipes.values() if pipe is not None]
        readable, writable, _ = select.select(
            sources, [1] if self._relay.waits else [], [], seconds
        )
        return [*readable, *writable]

    def _welcome(self, box):
        """Take the start time and the folders that the launcher hands over."""
        text, folders, _, _ = socket.recv_fds(box, 64, slot_supervisor.FOLDERS)
        self._folders += folders
        if text and len(folders) == slot_supervisor.FOLDERS:
            self.report.start_ns = marshal.loads(text)  # noqa: S302 - before the program ran
            self.report.launched = True
            self._relay.put(_STARTED)

    def _hear(self):
        """Take the server's word that the run is over; closed input means there is no server."""
        if not os.read(0, 1):
            os._exit(3)
        self.report.killed = True

    def _take(self, kind, pipe):
        try:
            chunk = os.read(pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._pipes[kind] = None
            os.close(pipe)
            return False
        self._relay.put(kind, chunk)
        return True

    def _drain(self, kind, pipe):
        """Take what the dead have written; a descriptor in flight may keep the pipe open."""
        while pipe is not None and self._take(kind, pipe):
            self._relay.flush()

    def _kill_all(self):
        while True:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            if not self._reap(0):
                return

    def _reap(self, flags):
        """Bury the dead, who are ours when their parents are gone; tell whether some live."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, flags)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            report = self.report
            report.cpu_seconds += usage.ru_utime + usage.ru_stime
            report.peak_memory_bytes = max(report.peak_memory_bytes, usage.ru_maxrss * 1024)
            if pid == self._child:
                code = os.waitstatus_to_exitcode(status)
                report.status = code if code >= 0 else 128 - code
                self._ended = True
            if flags == 0:
                return True

    def _count(self, spent_before):
        report, counters = self.report, self._counters
        spent = counters.cpu_seconds()
        if spent is not None and spent_before is not None:
            report.cpu_seconds = spent - spent_before
        report.peak_memory_bytes = counters.read("peak_bytes") or report.peak_memory_bytes
        report.oom_kills = counters.read("oom_kills") or 0
        report.processes_refused = counters.read("processes_refused") or 0

    def _send_left(self, descriptors):
        """Send the artifact, if there is one, and then each fetched file under its place."""
        if self.report.artifact == "file":
            self._send(descriptors.pop(0), _ARTIFACT, b"")
        for place, descriptor in enumerate(descriptors):
            self._relay.put(_FILE, bytes([place]))  # an empty file is one, too
            self._send(descriptor, _FILE, bytes([place]))

    def _send(self, descriptor, kind, prefix):
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            self._relay.put(kind, prefix + chunk)
            self._relay.flush()


def _receive():
    """Read the request; a server that goes away, or never asks, ends the wait."""
    content = bytearray()
    size = 4
    while len(content) < size:
        ready, _, _ = select.select([0], [], [], _IDLE_SECONDS)
        chunk = os.read(0, size - len(content)) if ready else b""
        if not chunk:
            os._exit(0)
        content += chunk
        if size == 4 and len(content) == 4:
            size += int.from_bytes(content, "big")
    return marshal.loads(content[4:])  # noqa: S302 - the server is trusted, and no program yet


def _main():
    _control(_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for end in _WAKE:
        os.set_blocking(end, False)
    signal.set_wakeup_fd(_WAKE[1], warn_on_full_buffer=False)
    relay, counters = StreamRelay(), Counters()
    relay.put(_READY)
    relay.flush()
    request = _receive()
    _install(request.pop("seccomp"))
    ProgramRun(request, relay, counters).carry_out()


if __name__ == "__main__":
    _WAKE = os.pipe()
    _main()
