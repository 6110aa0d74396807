"""Forks programs into boxes that exist already, from a process that imported their packages.

What is imported here is imported once for all programs. The parent has one thread and never
computes: `fork` copies only the calling thread, and a lock that another one held would stay locked
in the child forever. A program finds nothing of its ancestors but the modules: no descriptor, no
process, no folder.
"""

import gc
import importlib
import marshal
import os
import signal
import sys
import time

import fd_channel
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
NOT_STARTED, BOX_KILLED = (
    marshal.dumps([exit_code, 0.0, 0], 2) for exit_code in (1, -signal.SIGKILL)
)


class Forker:
    """Forks one program at a time."""

    def __init__(self, seccomp):
        self._seccomp = seccomp
        threadpools = sys.modules.get("threadpoolctl")
        self._threadpools = threadpools and threadpools.ThreadpoolController()
        self._own_pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        compile("pass", "", "exec", _ONLY_TREE)  # the first syntax tree creates all node types
        gc.collect()
        gc.freeze()

    def run(self, request, fds):
        """Run a program in the box of the last descriptor, a pidfd; return how it ended.

        `setns` moves only the children of the caller into a process namespace, never the caller:
        so the parent joins the box, forks the program into it as a direct child, for which it can
        wait, and goes back to its own namespace.
        """
        _assert_single_thread()
        box = fds[-1]
        try:
            namespaces.enter(box, namespaces.PROCESSES)
            pid = os.fork()
        except OSError:  # the box was killed meanwhile
            namespaces.enter(self._own_pid_namespace, namespaces.PROCESSES)
            return NOT_STARTED
        if pid == 0:
            try:
                _become_program(request, fds, self._seccomp, self._threadpools)
            except BaseException as error:  # noqa: BLE001 - it must never return from here
                os.write(2, f"zygote: {error!r}\n".encode())
            finally:
                os._exit(1)
        namespaces.enter(self._own_pid_namespace, namespaces.PROCESSES)
        _, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        cpu_seconds = usage.ru_utime + usage.ru_stime
        peak_bytes = usage.ru_maxrss * 1024  # includes what it shares with the zygote
        return marshal.dumps([code if code >= 0 else 128 - code, cpu_seconds, peak_bytes], 2)


def _become_program(request, fds, seccomp, threadpools):
    # The user namespace is joined with the others in one call: being root of it is what allows
    # the rest. Rights go away last, since everything before needs them.
    namespaces.enter(fds.pop(), _JOINED)
    for number, descriptor in enumerate(fds):  # all of them are above these numbers
        os.dup2(descriptor, number)
    os.closerange(len(fds), os.sysconf("SC_OPEN_MAX"))
    os.setsid()
    os.sched_setaffinity(0, request["cores"])
    os.chdir("/box")
    namespaces.give_up_rights(seccomp)
    namespaces.set_dumpable(True)
    started_ns = time.monotonic_ns()
    payloads = [launcher.read_payload()]
    launcher.hand_over(_CONTROL, started_ns, payloads[0]["folders"])
    _reseed()
    _use_cores(request["threads"], threadpools)
    for name in ("fd_channel", "forker", "launcher", "namespaces", "program_exit"):
        del sys.modules[name]
    program_exit.leave(launcher.run, payloads)


def _reseed():
    """Seed the global generators, which would otherwise draw the same numbers in all siblings."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed(list(os.urandom(16)))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.seed()


def _use_cores(threads, threadpools):
    """Use all cores of the slot; libraries were loaded with one, so that none starts a thread."""
    if threads == 1:
        return
    for name in os.environ:
        if name.endswith("_NUM_THREADS") or name == "LOKY_MAX_CPU_COUNT":
            os.environ[name] = str(threads)
    if threadpools is not None:
        threadpools.limit(limits=threads)


def _assert_single_thread():
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
    """Import, answer `ready`, and fork programs until the zygote server hangs up."""
    _preload(settings["preload"])
    forker = Forker(settings["seccomp"])
    _assert_single_thread()
    channel.send(b"ready")
    while True:
        text, fds = fd_channel.receive(channel, _MESSAGE_BYTES, 5)
        if not text:
            return
        result = forker.run(marshal.loads(text), fds)  # noqa: S302 - the zygote server's
        for fd in fds:
            os.close(fd)
        channel.send(result)
