"""Forks programs into boxes that stand already, from a process that imported their packages.

What is imported here is imported for every program, once. The parent has one thread and never
computes: a thread would not exist in a fork, and what it was about to do would never be done.
A program finds nothing of its ancestors but the modules: no descriptor, no process, no folder.
"""

import gc
import importlib
import marshal
import os
import signal
import socket
import sys
import time

import launcher
import markers  # noqa: F401 - every box needs it
import namespaces
import program_exit

_CONTROL = 3
_MESSAGE_BYTES = 1 << 17
_ONLY_TREE = 0x0400
_JOINED = (
    namespaces.USER | namespaces.MOUNTS | namespaces.NETWORK | namespaces.IPC | namespaces.HOST_NAME
)
NOTHING, KILLED = (marshal.dumps([status, 0.0, 0], 2) for status in (1, -signal.SIGKILL))


def receive(channel, most_fds):
    """Receive a message and descriptors that no child inherits."""
    room = socket.CMSG_SPACE(most_fds * 4)
    text, rights, _, _ = channel.recvmsg(_MESSAGE_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    return text, [fd for _, _, data in rights for fd in memoryview(data).cast("i")]


class Forker:
    """Forks one program at a time."""

    def __init__(self, steps):
        self.steps = steps
        pools = sys.modules.get("threadpoolctl")
        self.pools = pools and pools.ThreadpoolController()
        self.home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        compile("pass", "", "exec", _ONLY_TREE)  # the first tree of a process makes all its types
        gc.collect()
        gc.freeze()

    def run(self, request, fds):
        """Run a program in the box of the last descriptor; return how it ended."""
        _assert_single()
        box = fds[-1]
        try:
            namespaces.enter(box, namespaces.PROCESSES)
            pid = os.fork()
        except OSError:  # the box was ended meanwhile
            namespaces.enter(self.home, namespaces.PROCESSES)
            return NOTHING
        if pid == 0:
            try:
                _become_program(request, fds, self.steps, self.pools)
            except BaseException as error:  # noqa: BLE001 - it must never return from here
                os.write(2, f"zygote: {error!r}\n".encode())
            finally:
                os._exit(1)
        namespaces.enter(self.home, namespaces.PROCESSES)
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        spent = usage.ru_utime + usage.ru_stime
        peak_bytes = usage.ru_maxrss * 1024  # with what it has in common with us
        return marshal.dumps([code if code >= 0 else 128 - code, spent, peak_bytes], 2)


def _become_program(request, fds, steps, pools):
    namespaces.enter(fds.pop(), _JOINED)
    for place, descriptor in enumerate(fds):  # all of them are above these places
        os.dup2(descriptor, place)
    os.closerange(len(fds), os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    os.sched_setaffinity(0, request["cores"])
    os.chdir("/box")
    namespaces.give_up_rights(steps)
    namespaces.set_dumpable(True)
    started_ns = time.monotonic_ns()
    payloads = [launcher.read_payload()]
    launcher.hand_over(_CONTROL, started_ns, payloads[0]["folders"])
    _renew()
    _spread(request["threads"], pools)
    for name in ("forker", "launcher", "namespaces", "program_exit"):
        del sys.modules[name]
    program_exit.leave(launcher.run, payloads)


def _renew():
    """Draw anew what siblings would otherwise have in common."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed(list(os.urandom(16)))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.seed()


def _spread(threads, pools):
    """Use all cores of the slot; libraries were loaded with one, so that none starts a thread."""
    if threads == 1:
        return
    for name in os.environ:
        if name.endswith("_NUM_THREADS") or name == "LOKY_MAX_CPU_COUNT":
            os.environ[name] = str(threads)
    if pools is not None:
        pools.limit(limits=threads)


def _assert_single():
    threads = os.listdir("/proc/self/task")
    if len(threads) != 1:
        sys.exit(f"zygote: {len(threads)} threads after the imports where one is allowed")


def _preload(names):
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            os.write(2, f"zygote: {name} is not preloaded: {error}\n".encode())


def serve(channel, settings):
    """Import, say that it is done, and fork until the nursery hangs up."""
    _preload(settings["preload"])
    forker = Forker(settings["seccomp"])
    _assert_single()
    channel.send(b"ready")
    while True:
        text, fds = receive(channel, 5)
        if not text:
            return
        ended = forker.run(marshal.loads(text), fds)  # noqa: S302 - the nursery's
        for fd in fds:
            os.close(fd)
        channel.send(ended)
