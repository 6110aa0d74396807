"""The first process of a container: runs one program, kills it with all it started, reports.

It is to a container what the slot supervisor is to a bubblewrap box, and it is trusted: it runs
under the program's account (a container without capabilities has only one) and must therefore be
out of its reach. As the init of its process namespace it receives only signals that it handles;
it is not dumpable, so that its memory and descriptors are closed to the program; the seccomp
filter refuses to change another process's limits. The program is started anew by `launcher`, not
forked from here, so that nothing of this process's memory is in it.

The protocol: the server sends one request on standard input, and later perhaps one byte, which
ends the run early. Frames come back on standard output: a kind, a length and that many bytes. The
program writes to pipes of its own and cannot make a frame. A closed input means that the server is
gone: the init exits, and the kernel kills the container. Nothing is copied into or out of a
running container.
"""

import contextlib
import marshal
import os
import select
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))  # which -I leaves out

import artifacts
import deadline
import namespaces
import run_observation

_CHUNK_BYTES = 1 << 16
_BUFFER_BYTES = 1 << 18
_IDLE_SECONDS = 3600.0
# The kinds of frames; `docker/container.py` has the same table.
_READY, _STARTED, _OUT, _ERR, _ARTIFACT, _FILE, _HEARTBEAT, _REPORT = b"RS12AFBE"
_CGROUP_ROOT = "/sys/fs/cgroup/"
# A container sees its own cgroup at the root. Paths of version 1 come first (one tree for each
# controller), then those of version 2; the first file that exists is read. Version 2 counts
# CPU time in microseconds, and has `memory.peak` only since Linux 5.19.
_COUNTERS = {
    "oom_kills": (("memory/memory.oom_control", "oom_kill"), ("memory.events", "oom_kill")),
    "processes_refused": (("pids/pids.events", "max"), ("pids.events", "max")),
    "cpu_ns": (("cpuacct/cpuacct.usage", None), ("cpu,cpuacct/cpuacct.usage", None)),
    "cpu_us": (("cpu.stat", "usage_usec"),),
    "peak_bytes": (("memory/memory.max_usage_in_bytes", None), ("memory.peak", None)),
}


class CgroupFiles:
    """What the kernel has counted for this container; the files stay open from the start."""

    def __init__(self):
        self._files = {}
        for name, candidates in _COUNTERS.items():
            for path, field in candidates:
                with contextlib.suppress(OSError):
                    fd = os.open(_CGROUP_ROOT + path, os.O_RDONLY | os.O_CLOEXEC)
                    self._files[name] = fd, field
                    break

    def read(self, name):
        """Return one counter, or None where this kernel has none."""
        if name not in self._files:
            return None
        descriptor, field = self._files[name]
        text = os.pread(descriptor, 4096, 0).decode()
        if field is None:
            return int(text)
        fields = dict(line.split(" ", 1) for line in text.splitlines())
        return int(fields.get(field, 0))

    def cpu_seconds(self):
        """Return the processor time spent so far, or None."""
        nanoseconds, microseconds = self.read("cpu_ns"), self.read("cpu_us")
        if nanoseconds is not None:
            return nanoseconds / 1e9
        return None if microseconds is None else microseconds / 1e6


class FrameWriter:
    """Standard output: its buffer is bounded, and writing never blocks the watch on a program."""

    def __init__(self):
        self._buffer = bytearray()
        os.set_blocking(1, False)

    @property
    def is_full(self):
        """Tell whether the program's output has to wait in its pipe."""
        return len(self._buffer) >= _BUFFER_BYTES

    @property
    def has_pending(self):
        """Tell whether something is still to be sent."""
        return bool(self._buffer)

    def put(self, kind, content=b""):
        """Queue one frame."""
        self._buffer += struct.pack(">BI", kind, len(content))
        self._buffer += content

    def push(self):
        """Send what can be sent now."""
        with contextlib.suppress(BlockingIOError):
            while self._buffer:
                del self._buffer[: os.write(1, self._buffer[:_CHUNK_BYTES])]

    def flush(self):
        """Send everything, however long that takes; for when nothing is left to watch."""
        while self._buffer:
            select.select([], [1], [])
            self.push()


class ProgramRun:
    """One program, from its request to its report."""

    def __init__(self, request, frames, counters):
        self._request = request
        self._frames = frames
        self._counters = counters
        self._folders = []
        self._child = None
        self._program_ended = False
        self._next_heartbeat = 0.0
        self.observation = run_observation.RunObservation()

    def run(self):
        """Start the program, watch it, kill everything it started and report."""
        cpu_seconds_before = self._counters.cpu_seconds()
        control = self._start()
        with control:
            self._watch(control)
        self._kill_all()
        self.observation.end_ns = time.monotonic_ns()
        for kind, pipe in self._pipes.items():
            self._drain(kind, pipe)
        self._count(cpu_seconds_before)
        if self.observation.launched:
            found = artifacts.collect(self._folders, self._request, self.observation)
            self._send_files(found)
        self._frames.put(_REPORT, self.observation.to_json())
        self._frames.flush()

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
        inherited = enumerate([payload, out_end, err_end, theirs.fileno()])
        argv = self._request["argv"]
        self._child = os.posix_spawn(
            argv[0],
            argv,
            self._request["environment"],
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in inherited],
            setsigdef=[signal.SIGPIPE, signal.SIGINT],
            setsid=True,
        )
        theirs.close()
        for descriptor in (payload, out_end, err_end):
            os.close(descriptor)
        return ours

    def _watch(self, control):
        """Relay output until the program ends or is killed."""
        limit = deadline.Deadline(self._request["boot_seconds"])
        while not self._program_ended:
            if limit.kill_if_over(self.observation, self._kill_all):
                return
            ready = self._wait(control, min(limit.seconds_left, self._send_heartbeat()))
            if _WAKE[0] in ready:
                os.read(_WAKE[0], _CHUNK_BYTES)
            if control in ready:
                self._folders += self.observation.note_launch(control)
                if not self.observation.launched:
                    return
                self._frames.put(_STARTED)
                limit.limit_program(self.observation.start_ns, self._request["wall_seconds"])
            self._frames.push()
            for kind, pipe in self._pipes.items():
                if pipe in ready and not self._frames.is_full:
                    self._relay_chunk(kind, pipe)
            if 0 in ready:
                self._read_interrupt()
                return
            self._reap(os.WNOHANG)

    def _send_heartbeat(self):
        """Send the CPU time so far if a heartbeat is due; return the seconds until the next."""
        interval = self._request["heartbeat_seconds"]
        if not interval:
            return _IDLE_SECONDS
        now = time.monotonic()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + interval
            self._frames.put(_HEARTBEAT, str(self._counters.cpu_seconds() or 0.0).encode())
            self._frames.push()
        return self._next_heartbeat - now

    def _wait(self, control, seconds):
        sources = [0, _WAKE[0]]
        if not self.observation.launched:
            sources.append(control)
        if not self._frames.is_full:
            sources += [pipe for pipe in self._pipes.values() if pipe is not None]
        sinks = [1] if self._frames.has_pending else []
        readable, writable, _ = select.select(sources, sinks, [], seconds)
        return [*readable, *writable]

    def _read_interrupt(self):
        """Read the server's request to end the run; a closed input means there is no server."""
        if not os.read(0, 1):
            os._exit(3)
        self.observation.interrupted = True

    def _relay_chunk(self, kind, pipe):
        """Send some output; return whether there was any."""
        try:
            chunk = os.read(pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._pipes[kind] = None
            os.close(pipe)
            return False
        self._frames.put(kind, chunk)
        return True

    def _drain(self, kind, pipe):
        """Send what the dead have written.

        It stops at an empty pipe instead of its end, because a descriptor that was in flight over
        a socket may keep the pipe open.
        """
        while pipe is not None and self._relay_chunk(kind, pipe):
            self._frames.flush()

    def _kill_all(self):
        """Kill every other process of this namespace: as its init, -1 means exactly those.

        A process that forked just before it died leaves a child that was not there yet: so kill
        again after each death, until there is nobody to wait for.
        """
        while True:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            if not self._reap(0):
                return

    def _reap(self, flags):
        """Reap the dead, orphans included, and return whether some processes still live.

        Without this the zombies of a program would count against its limit of processes.
        """
        while True:
            try:
                pid, status, usage = os.wait4(-1, flags)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.observation.note_usage(usage)
            if pid == self._child:
                code = os.waitstatus_to_exitcode(status)
                self.observation.exit_code = code if code >= 0 else 128 - code
                self._program_ended = True
            if flags == 0:
                return True

    def _count(self, cpu_seconds_before):
        """Prefer the cgroup's counters to those of single processes, which miss shared memory."""
        observation, counters = self.observation, self._counters
        cpu_seconds = counters.cpu_seconds()
        if cpu_seconds is not None and cpu_seconds_before is not None:
            observation.cpu_seconds = cpu_seconds - cpu_seconds_before
        peak_bytes = counters.read("peak_bytes")
        observation.peak_memory_bytes = peak_bytes or observation.peak_memory_bytes
        observation.oom_kills = counters.read("oom_kills") or 0
        observation.processes_refused = counters.read("processes_refused") or 0

    def _send_files(self, descriptors):
        """Send the artifact, if there is one, and then each requested file under its index."""
        if self.observation.artifact_status == "file":
            self._send_file(descriptors.pop(0), _ARTIFACT, b"")
        for index, descriptor in enumerate(descriptors):
            self._frames.put(_FILE, bytes([index]))  # so that an empty file arrives, too
            self._send_file(descriptor, _FILE, bytes([index]))

    def _send_file(self, descriptor, kind, prefix):
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            self._frames.put(kind, prefix + chunk)
            self._frames.flush()


def _receive_request():
    """Read the request; exit when the server goes away or never sends one."""
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
    namespaces.set_dumpable(False)
    # The kernel drops every signal that an init does not handle, even SIGKILL from inside. Python
    # handles SIGINT by default: ignore it. SIGCHLD has to be handled, to wake `select` up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for end in _WAKE:
        os.set_blocking(end, False)
    signal.set_wakeup_fd(_WAKE[1], warn_on_full_buffer=False)
    frames, counters = FrameWriter(), CgroupFiles()
    frames.put(_READY)
    frames.flush()
    request = _receive_request()
    namespaces.install_filter(request.pop("seccomp"))
    ProgramRun(request, frames, counters).run()


if __name__ == "__main__":
    _WAKE = os.pipe()
    _main()
