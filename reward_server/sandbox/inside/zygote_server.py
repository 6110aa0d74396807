"""Builds a fresh box per program and has the program forked into it.

It is the first process of a box that holds a read-only tree and no program; there, and nowhere
else, it has rights. For each program it clones a warden into new user, mount, process, network,
IPC and host name spaces. The warden lays fresh folders over the tree, hides where the data came
from, gives up every right and stays as the first process of the new box. The program is then
forked into that box, either by the nursery, which is a bare interpreter, or by its child the
zygote, which has imported the usual packages. Neither ever computes or runs a line of a program.

The conversation with the keeper over descriptor 3: a first message of settings, answered by
`ready`; then for each program one request with the descriptors [payload, stdout, stderr,
control], answered by a descriptor of the warden (whose death is the death of the box), and by
how the program ended.
"""

import fcntl
import marshal
import os
import select
import signal
import socket
import struct
import sys

import forker
import namespaces

_CHANNEL = 3
_ANSWER_BYTES = 64
_DEATH_SECONDS = 0.2
_RAISE_INTERFACE = 0x8914
_USER = 1000
_STAGE = "/stage"
_FOLDERS = (("/box", "700"), ("/tmp", "1777"), ("/dev/shm", "1777"))  # noqa: S108 - the box's own
_LEAST_INODES, _BYTES_PER_INODE = 4096, 4096
_OWN = namespaces.NO_SUID | namespaces.NO_DEVICES


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _map_user():
    """Be an ordinary user in here; outside it is the slot's account, as before."""
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_USER} 0 1")
    _write("/proc/self/gid_map", f"{_USER} 0 1")
    _write("/proc/sys/user/max_user_namespaces", "0")


def _mount_folders(request):
    namespaces.mount(None, "/", None, namespaces.RECURSIVE | namespaces.PRIVATE)
    namespaces.mount("proc", "/proc", "proc", _OWN | namespaces.NO_EXEC)
    inodes = max(_LEAST_INODES, request["disk_bytes"] // _BYTES_PER_INODE)
    for folder, mode in _FOLDERS:
        options = f"size={request['disk_bytes']},nr_inodes={inodes},mode={mode}"
        namespaces.mount("tmpfs", folder, "tmpfs", _OWN, options)
    namespaces.mount("tmpfs", "/workdir", "tmpfs", _OWN, "size=64k,mode=755")
    if request["public"] is not None:
        public = f"/workdir/{request['task_id']}/prepared/public"
        os.makedirs(public, 0o755)
        namespaces.mount(f"{_STAGE}/{request['public']}", public, None, namespaces.BIND)
    read_only = namespaces.BIND | namespaces.REMOUNT | namespaces.READ_ONLY
    namespaces.mount(None, "/workdir", None, read_only | _OWN)
    namespaces.mount("tmpfs", _STAGE, "tmpfs", namespaces.READ_ONLY | _OWN, "size=4k,mode=000")


def _raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _RAISE_INTERFACE, struct.pack("16sh14x", b"lo", 1))


def _be_box_init(request, steps, done):
    """Build the box and stay in it, as the one that inherits orphans, until killed."""
    _map_user()
    _mount_folders(request)
    _raise_loopback()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # of what it does not handle it takes nothing
    namespaces.give_up_rights(steps)
    namespaces.set_dumpable(False)
    os.write(done, b"built")
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    while True:
        signal.pause()


def _build_box(request, steps, stderr):
    """Start a warden, wait until the box stands, and return it."""
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
            _be_box_init(request, steps, done)
        except BaseException as error:  # noqa: BLE001 - it must never return from here
            os.write(stderr, f"nursery: {error!r}\n".encode())
        finally:
            os._exit(1)
    os.close(done)
    stands = os.read(built, 16) == b"built"
    os.close(built)
    return pid, handle, stands


def _checked(ended, warden):
    """Tell a program that was killed from one whose whole box was, by its warden's death."""
    status = marshal.loads(ended)[0]  # noqa: S302 - our own
    was_killed = status == 128 + signal.SIGKILL
    if was_killed and select.select([warden], [], [], _DEATH_SECONDS)[0]:
        return forker.KILLED
    return ended


class _ZygoteServer:
    def __init__(self, channel, settings):
        self.channel = channel
        self.steps = settings["seccomp"]
        self.zygote, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.forker = forker.Forker(self.steps)
        if os.fork() == 0:
            channel.close()
            self.zygote.close()
            forker.serve(theirs, settings)
            os._exit(0)
        theirs.close()
        if self.zygote.recv(_ANSWER_BYTES) != b"ready":
            sys.exit("nursery: the zygote did not start")

    def serve(self):
        while True:
            text, fds = forker.receive(self.channel, 4)
            if not text:
                return
            request = marshal.loads(text)  # noqa: S302 - the keeper's
            pid, handle, stands = _build_box(request, self.steps, fds[2])
            socket.send_fds(self.channel, [b"begun"], [handle])
            ended = self._run(request, text, fds, handle) if stands else forker.NOTHING
            ended = _checked(ended, handle)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(handle)
            for fd in fds:
                os.close(fd)
            self.channel.send(ended)

    def _run(self, request, text, fds, handle):
        if not request["preloaded"]:
            return self.forker.run(request, [*fds, handle])
        socket.send_fds(self.zygote, [text], [*fds, handle])
        ended = self.zygote.recv(_ANSWER_BYTES)
        if not ended:
            sys.exit("nursery: the zygote is gone")
        return ended


if __name__ == "__main__":
    os.closerange(_CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))
    _channel = socket.socket(fileno=_CHANNEL)
    _settings = marshal.loads(forker.receive(_channel, 0)[0])  # noqa: S302 - the keeper's
    _nursery = _ZygoteServer(_channel, _settings)
    _channel.send(b"ready")
    _nursery.serve()
