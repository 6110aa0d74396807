"""Namespaces, mounts and privileges: the system calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os
import signal

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE, SLAVE = 32, 4096, 16384, 1 << 18, 1 << 19
MOUNTS, HOST_NAME, IPC, USER, PROCESSES, NETWORK, TIME = (
    *(0x20000, 0x4000000, 0x8000000),
    *(0x10000000, 0x20000000, 0x40000000),
    0x80,
)
_PIDFD = 0x1000
_CLONE_CALL = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
_SET_DUMPABLE, _SET_FILTER, _DROP_BOUND, _CHILD_SUBREAPER, _NO_NEW_PRIVILEGES, _AMBIENT = (
    *(4, 22, 24),
    *(36, 38, 47),
)
_CLEAR_AMBIENT = 4
_FILTER_MODE = 2
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64

# PyDLL keeps the interpreter's lock across a call: a child cloned without it would wait forever
# for a lock whose owner does not exist in its own process.
_libc = ctypes.PyDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    """Mount, bind or remount."""
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    data = None if options is None else options.encode()
    _check(_libc.mount(*texts, ctypes.c_ulong(flags), data), f"mount {target}")


def unshare(namespaces: int) -> None:
    """Move this process into new namespaces."""
    _check(_libc.unshare(namespaces), "unshare")


def clone(namespaces: int) -> tuple[int, int]:
    """Fork into new namespaces; return the child's process id and a pidfd.

    All namespaces are made by one call. The kernel makes the user namespace first and the others
    as its property, so that an account without rights outside may mount and configure in there.
    The pidfd comes from the same call: a process id could be reused before it was opened.
    """
    handle = ctypes.c_int(-1)
    flags = namespaces | _PIDFD | signal.SIGCHLD
    numbers = (ctypes.c_long(number) for number in (_CLONE_CALL, flags, 0))
    zeros = (ctypes.c_long(0), ctypes.c_long(0))
    pid = _check(_libc.syscall(*numbers, ctypes.byref(handle), *zeros), "clone")
    return pid, handle.value


def enter(handle: int, namespaces: int) -> None:
    """Join namespaces of the process (by pidfd), or the one namespace, that is open as `handle`."""
    _check(_libc.setns(handle, namespaces), "setns")


def give_up_rights(instructions: bytes) -> None:
    """Keep no capability, gain none ever again, and have the kernel filter system calls.

    The bounding set goes first, because emptying it takes a capability. "No new privileges" comes
    before the filter, because the kernel accepts a filter from an ordinary process only then. The
    filter comes last: it forbids calls that the steps before it need.
    """
    for capability in range(_CAPABILITIES):
        if _libc.prctl(_DROP_BOUND, capability, 0, 0, 0) < 0:
            break
    _check(_libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0), "prctl")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    install_filter(instructions)


def install_filter(instructions: bytes) -> None:
    """Give this process and all its descendants the filter of system calls."""
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
    program = _Filter(len(instructions) // 8, instructions)
    _check(_libc.prctl(_SET_FILTER, _FILTER_MODE, ctypes.byref(program), 0, 0), "prctl")


def set_dumpable(is_dumpable: bool) -> None:  # noqa: FBT001 - the name of the function says it
    """Let others of this account look into this process, or not."""
    _check(_libc.prctl(_SET_DUMPABLE, int(is_dumpable), 0, 0, 0), "prctl")


def become_subreaper() -> None:
    """Become the parent of every orphan below this process, so that none escapes `wait`."""
    _check(_libc.prctl(_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
