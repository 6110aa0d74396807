"""Builds a fresh box for each program and has the program forked into it.

It is the first process of a box that holds a read-only tree and no program; there, and nowhere
else, it is root. For each program it clones a box init into new user, mount, process, network,
IPC and host name namespaces. The box init mounts fresh folders over the tree, hides where the data
came from, gives up every right and stays as the first process of the new box. The program is then
forked into that box, either by this process, which is a bare interpreter, or by its child the
zygote, which has imported the usual packages. Neither ever computes or runs a line of a program.

The protocol with the slot supervisor over descriptor 3. A message is a packet of marshalled data:
1. supervisor to server: {"seccomp": the filter, "preload": names of modules}.
2. server to supervisor: `ready`, when the zygote has imported them.
3. supervisor to server, for each program: {"task_id", "public", "disk_bytes", "cores", "threads",
   "preloaded"} with the descriptors [payload, stdout, stderr, control].
4. server to supervisor: `started` with a pidfd of the box init, even when the box could not be
   built. The supervisor kills the box through it when the time is up.
5. server to supervisor: [exit code, CPU seconds, peak bytes], when the box is dead.
The server sends nothing else: anything readable between two programs means that it has died.

The zygote is served in the same way over a socket of its own: `ready`, then message 3 with the
pidfd as a fifth descriptor, answered by message 5.
"""

import fcntl
import marshal
import os
import select
import signal
import socket
import struct
import sys

import fd_channel
import forker
import namespaces

_CHANNEL = 3
_MESSAGE_BYTES = 1 << 17
_ANSWER_BYTES = 64
_DEATH_SECONDS = 0.2
_SET_INTERFACE_FLAGS = 0x8914
_USER = 1000
_STAGE = "/stage"
_FOLDERS = (("/box", "700"), ("/tmp", "1777"), ("/dev/shm", "1777"))  # noqa: S108 - the box's own
_LEAST_INODES, _BYTES_PER_INODE = 4096, 4096
_FLAGS = namespaces.NO_SUID | namespaces.NO_DEVICES


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _map_user():
    """Become an ordinary user in here; outside it is the slot's account, as before.

    A map can be written only once, and the group map by an unprivileged writer only after
    `setgroups` is denied. The last line forbids nested user namespaces, even without the filter.
    """
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_USER} 0 1")
    _write("/proc/self/gid_map", f"{_USER} 0 1")
    _write("/proc/sys/user/max_user_namespaces", "0")


def _mount_folders(request):
    """Mount the box's own view over the tree of the zygote server's box.

    Private first, so that no mount below reaches the tree of another box. The fresh /proc shows
    only the processes of this box's namespace. The data is bound from the stage, and an empty
    mount hides the stage last, with the data of all other tasks.
    """
    namespaces.mount(None, "/", None, namespaces.RECURSIVE | namespaces.PRIVATE)
    namespaces.mount("proc", "/proc", "proc", _FLAGS | namespaces.NO_EXEC)
    inodes = max(_LEAST_INODES, request["disk_bytes"] // _BYTES_PER_INODE)
    for folder, mode in _FOLDERS:
        options = f"size={request['disk_bytes']},nr_inodes={inodes},mode={mode}"
        namespaces.mount("tmpfs", folder, "tmpfs", _FLAGS, options)
    namespaces.mount("tmpfs", "/workdir", "tmpfs", _FLAGS, "size=64k,mode=755")
    if request["public"] is not None:
        public = f"/workdir/{request['task_id']}/prepared/public"
        os.makedirs(public, 0o755)
        namespaces.mount(f"{_STAGE}/{request['public']}", public, None, namespaces.BIND)
    read_only = namespaces.BIND | namespaces.REMOUNT | namespaces.READ_ONLY
    namespaces.mount(None, "/workdir", None, read_only | _FLAGS)
    namespaces.mount("tmpfs", _STAGE, "tmpfs", namespaces.READ_ONLY | _FLAGS, "size=4k,mode=000")


def _bring_up_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _SET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", 1))


def _run_box_init(request, seccomp, done):
    """Build the box and stay in it, as the init that inherits orphans, until killed."""
    _map_user()
    _mount_folders(request)
    _bring_up_loopback()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an init gets no signal it does not handle
    namespaces.give_up_rights(seccomp)
    namespaces.set_dumpable(False)
    os.write(done, b"built")
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    while True:
        signal.pause()


def _build_box(request, seccomp, stderr):
    """Start a box init, wait until it has built the box, and return its pid and pidfd."""
    built, done = os.pipe()
    pid, handle = namespaces.clone(
        namespaces.USER
        | namespaces.MOUNTS
        | namespaces.PROCESSES
        | namespaces.NETWORK
        | namespaces.IPC
        | namespaces.HOST_NAME
    )
    if pid == 0:
        try:
            _run_box_init(request, seccomp, done)
        except BaseException as error:  # noqa: BLE001 - it must never return from here
            os.write(stderr, f"zygote server: {error!r}\n".encode())
        finally:
            os._exit(1)
    os.close(done)
    is_built = os.read(built, 16) == b"built"
    os.close(built)
    return pid, handle, is_built


def _tell_killed_box_apart(result, box_init):
    """Replace the result where the whole box was killed, and not just the program.

    A program that kills itself leaves the box init alive. The kernel kills the program before it
    reports the death of the init, so a dying init gets a moment to become readable.
    """
    exit_code = marshal.loads(result)[0]  # noqa: S302 - our own
    was_killed = exit_code == 128 + signal.SIGKILL
    if was_killed and select.select([box_init], [], [], _DEATH_SECONDS)[0]:
        return forker.BOX_KILLED
    return result


class _ZygoteServer:
    def __init__(self, channel, settings):
        self._channel = channel
        self._seccomp = settings["seccomp"]
        self._zygote, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._forker = forker.Forker(self._seccomp)
        if os.fork() == 0:
            channel.close()
            self._zygote.close()
            forker.serve(theirs, settings)
            os._exit(0)
        theirs.close()
        if self._zygote.recv(_ANSWER_BYTES) != b"ready":
            sys.exit("zygote server: the zygote did not start")

    def serve(self):
        while True:
            text, fds = fd_channel.receive(self._channel, _MESSAGE_BYTES, 4)
            if not text:
                return
            request = marshal.loads(text)  # noqa: S302 - the slot supervisor's
            pid, handle, is_built = _build_box(request, self._seccomp, fds[2])
            socket.send_fds(self._channel, [b"started"], [handle])
            result = self._run(request, text, fds, handle) if is_built else forker.NOT_STARTED
            result = _tell_killed_box_apart(result, handle)
            # The box dies with its program: the kernel kills all that is left with its init.
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(handle)
            for fd in fds:
                os.close(fd)
            self._channel.send(result)

    def _run(self, request, text, fds, handle):
        if not request["preloaded"]:
            return self._forker.run(request, [*fds, handle])
        socket.send_fds(self._zygote, [text], [*fds, handle])
        result = self._zygote.recv(_ANSWER_BYTES)
        if not result:
            sys.exit("zygote server: the zygote is gone")
        return result


if __name__ == "__main__":
    os.closerange(_CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))
    _channel = socket.socket(fileno=_CHANNEL)
    _text, _ = fd_channel.receive(_channel, _MESSAGE_BYTES, 0)
    _server = _ZygoteServer(_channel, marshal.loads(_text))  # noqa: S302 - the slot supervisor's
    _channel.send(b"ready")
    _server.serve()
