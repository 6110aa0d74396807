"""The few system calls a box is made of that Python has no function for."""

import ctypes
import os
import signal

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18
MOUNTS, HOST_NAME, IPC, USER, PROCESSES, NETWORK = (
    *(0x20000, 0x4000000, 0x8000000),
    *(0x10000000, 0x20000000, 0x40000000),
)
_PIDFD = 0x1000
_CLONE_CALL = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
_SET_DUMPABLE, _SET_FILTER, _DROP_BOUND, _NO_NEW_PRIVILEGES, _AMBIENT = 4, 22, 24, 38, 47
_CLEAR_AMBIENT = 4
_FILTER_MODE = 2
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64

# The lock of the interpreter stays held across calls, so that a clone is born holding it.
_libc = ctypes.PyDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _check(result):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def mount(source, target, kind, flags, options=None):
    """Mount, bind or remount."""
    texts = [text and text.encode() for text in (source, target, kind)]
    _check(_libc.mount(*texts, ctypes.c_ulong(flags), options and options.encode()))


def clone(spaces):
    """Fork into new namespaces; return the child's number and a descriptor of it."""
    handle = ctypes.c_int(-1)
    flags = spaces | _PIDFD | signal.SIGCHLD
    numbers = (ctypes.c_long(number) for number in (_CLONE_CALL, flags, 0))
    zeros = (ctypes.c_long(0), ctypes.c_long(0))
    pid = _check(_libc.syscall(*numbers, ctypes.byref(handle), *zeros))
    return pid, handle.value


def enter(handle, spaces):
    """Join namespaces of the process, or the one namespace, that a descriptor stands for."""
    _check(_libc.setns(handle, spaces))


def give_up_rights(steps):
    """Keep no capability, gain none ever again, and have the kernel filter system calls."""
    for capability in range(_CAPABILITIES):
        if _libc.prctl(_DROP_BOUND, capability, 0, 0, 0) < 0:
            break
    _check(_libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0))
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()))
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    program = _Filter(len(steps) // 8, steps)
    _check(_libc.prctl(_SET_FILTER, _FILTER_MODE, ctypes.byref(program), 0, 0))


def set_dumpable(is_dumpable):
    """Let others of this account look into this process, or not."""
    _check(_libc.prctl(_SET_DUMPABLE, int(is_dumpable), 0, 0, 0))
