"""The system calls that a program may not make, as a filter that the kernel runs.

A denylist on top of namespaces, no capabilities and no new privileges: it takes away kernel
interfaces that programs do not need and that have had many bugs (mounting, tracing, key rings,
io_uring, new namespaces, unusual socket families). Hand-assembled, because the filter is forty
lines and a binding to libseccomp is one more thing to install.

An instruction is (code, jump if true, jump if false, operand); jumps count the instructions to
skip and go forward only. The filter sees the call's number and the values of its arguments, never
the memory they point to.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

from reward_server.errors import SetupError

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_SOCKET_FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink


@dataclass(frozen=True, slots=True)
class _Architecture:
    audit: int
    clone: int
    clone3: int
    socket: int
    ioctl: int
    prlimit64: int
    denied: dict[str, int]


_SINCE_5_1 = {
    "pidfd_getfd": 438,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "process_madvise": 440,
}

_X86_64 = _Architecture(
    audit=0xC000003E,
    clone=56,
    clone3=435,
    socket=41,
    ioctl=16,
    prlimit64=302,
    denied={
        "ptrace": 101, "syslog": 103, "uselib": 134, "personality": 135, "ustat": 136,
        "sysfs": 139, "vhangup": 153, "pivot_root": 155, "adjtimex": 159, "chroot": 161,
        "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
        "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172,
        "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
        "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
        "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304,
        "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320,
        "bpf": 321, "userfaultfd": 323, **_SINCE_5_1,
    },
)  # fmt: skip

_AARCH64 = _Architecture(
    audit=0xC00000B7,
    clone=220,
    clone3=435,
    socket=198,
    ioctl=29,
    prlimit64=261,
    denied={
        "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51,
        "vhangup": 58, "quotactl": 60, "acct": 89, "personality": 92, "unshare": 97,
        "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
        "syslog": 116, "ptrace": 117, "reboot": 142, "sethostname": 161,
        "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "add_key": 217,
        "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225,
        "perf_event_open": 241, "fanotify_init": 262, "name_to_handle_at": 264,
        "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
        "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, **_SINCE_5_1,
    },
)  # fmt: skip

_ARCHITECTURES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def build_filter(machine: str | None = None) -> bytes:
    """Return the filter for this machine as the kernel takes it.

    Raises:
        SetupError: when this processor architecture has no table.
    """
    name = machine or platform.machine()
    architecture = _ARCHITECTURES.get(name)
    if architecture is None:
        message = f"no system call table for {name}: boxes need an x86_64 or aarch64 machine"
        raise SetupError(message)
    return b"".join(struct.pack("HBBI", *step) for step in _steps(architecture))


def denied_calls(machine: str | None = None) -> dict[str, int]:
    """Return the refused system calls of this machine by name."""
    return dict(_ARCHITECTURES[machine or platform.machine()].denied)


_Step = tuple[int, int, int, int]


def _steps(arch: _Architecture) -> list[_Step]:
    refuse = _ERRNO | errno.EPERM
    steps: list[_Step] = [
        # Numbers mean other calls under another architecture (32-bit, for one), so that is fatal.
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, arch.audit),
        (_RETURN, 0, 0, _KILL),
        # The x32 ABI has the same architecture and other numbers, marked by one bit.
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_GREATER_EQUAL, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_JUMP_EQUAL, 0, 1, arch.clone3),  # its flags are in memory; libc falls back to clone
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        *_argument_rule(arch.clone, 0, [(_JUMP_SET, _NEW_NAMESPACES)], refuse, _ALLOW),
        *_argument_rule(
            arch.socket,
            0,
            [(_JUMP_EQUAL, family) for family in _SOCKET_FAMILIES],
            _ALLOW,
            _ERRNO | errno.EAFNOSUPPORT,
        ),
        *_argument_rule(
            arch.ioctl,
            1,
            [(_JUMP_EQUAL, _TIOCSTI), (_JUMP_EQUAL, _TIOCLINUX)],
            refuse,
            _ALLOW,
        ),
        # A process may change only its own limits: one on CPU time would kill even a box's init.
        *_argument_rule(arch.prlimit64, 0, [(_JUMP_EQUAL, 0)], _ALLOW, refuse),
    ]
    numbers = sorted(arch.denied.values())
    steps += [(_JUMP_EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    return [*steps, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, refuse)]


def _argument_rule(
    number: int, argument: int, tests: list[tuple[int, int]], if_any: int, otherwise: int
) -> list[_Step]:
    """Decide one system call by the low half of one argument; skip the rule for others.

    The kernel reads these arguments as 32-bit numbers, so the high half has no meaning.
    """
    count = len(tests)
    return [
        (_JUMP_EQUAL, 0, count + 3, number),
        (_LOAD, 0, 0, _ARGUMENT + 8 * argument),
        *((kind, count - i, 0, value) for i, (kind, value) in enumerate(tests)),
        (_RETURN, 0, 0, otherwise),
        (_RETURN, 0, 0, if_any),
    ]
