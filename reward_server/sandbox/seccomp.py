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
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_server.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_SOCKET_FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink


# By processor architecture: the numbers of the calls that the filter decides by an argument, and
# below `denied` those of the calls it refuses.
_ARCHITECTURES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_SINCE_5_1: dict[str, int] = _ARCHITECTURES.pop("since_5_1")  # the same everywhere


def build_filter(machine: str | None = None) -> bytes:
    """Return the filter for this machine as the kernel takes it.

    Raises:
        SetupError: when this processor architecture has no table.
    """
    name = machine or platform.machine()
    if name not in _ARCHITECTURES:
        message = f"no system call table for {name}: boxes need an x86_64 or aarch64 machine"
        raise SetupError(message)
    steps = _steps(_ARCHITECTURES[name], denied_calls(name))
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def denied_calls(machine: str | None = None) -> dict[str, int]:
    """Return the refused system calls of this machine by name."""
    denied: dict[str, int] = _ARCHITECTURES[machine or platform.machine()]["denied"]
    return denied | _SINCE_5_1


_Step = tuple[int, int, int, int]


def _steps(numbers: Mapping[str, int], denied: Mapping[str, int]) -> list[_Step]:
    refuse = _ERRNO | errno.EPERM
    steps: list[_Step] = [
        # Numbers mean other calls under another architecture (32-bit, for one), so that is fatal.
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, numbers["audit"]),
        (_RETURN, 0, 0, _KILL),
        # The x32 ABI has the same architecture and other numbers, marked by one bit.
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_GREATER_EQUAL, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_JUMP_EQUAL, 0, 1, numbers["clone3"]),  # its flags are in memory; libc falls back to clone
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        *_argument_rule(numbers["clone"], 0, [(_JUMP_SET, _NEW_NAMESPACES)], refuse, _ALLOW),
        *_argument_rule(
            numbers["socket"],
            0,
            [(_JUMP_EQUAL, family) for family in _SOCKET_FAMILIES],
            _ALLOW,
            _ERRNO | errno.EAFNOSUPPORT,
        ),
        *_argument_rule(
            numbers["ioctl"],
            1,
            [(_JUMP_EQUAL, _TIOCSTI), (_JUMP_EQUAL, _TIOCLINUX)],
            refuse,
            _ALLOW,
        ),
        # A process may change only its own limits: one on CPU time would kill even a box's init.
        *_argument_rule(numbers["prlimit64"], 0, [(_JUMP_EQUAL, 0)], _ALLOW, refuse),
    ]
    refused = sorted(denied.values())
    steps += [(_JUMP_EQUAL, len(refused) - i, 0, number) for i, number in enumerate(refused)]
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
