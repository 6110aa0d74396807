"""The filter, run by a small interpreter of the language the kernel runs it in."""

from __future__ import annotations

import errno
import struct

import pytest

from reward_server.errors import SetupError
from reward_server.sandbox.seccomp import build_filter, denied_calls

ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS = REFUSE | errno.EPERM, REFUSE | errno.ENOSYS
NO_FAMILY = REFUSE | errno.EAFNOSUPPORT
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "x86_64": {"clone": 56, "socket": 41, "ioctl": 16, "prlimit64": 302},
    "aarch64": {"clone": 220, "socket": 198, "ioctl": 29, "prlimit64": 261},
}
EVERYDAY = {
    "x86_64": {"read": 0, "write": 1, "openat": 257, "mmap": 9, "fork": 57, "vfork": 58,
               "execve": 59, "wait4": 61, "kill": 62, "getrandom": 318, "memfd_create": 319,
               "futex": 202, "sched_setaffinity": 203, "set_mempolicy": 238, "mbind": 237,
               "statx": 332, "rseq": 334, "pidfd_open": 434, "close_range": 436, "faccessat2": 439},
    "aarch64": {"read": 63, "write": 64, "openat": 56, "mmap": 222, "execve": 221, "wait4": 260,
                "kill": 129, "getrandom": 278, "memfd_create": 279, "futex": 98, "statx": 291,
                "rseq": 293, "pidfd_open": 434, "close_range": 436, "faccessat2": 439},
}  # fmt: skip
MACHINES = pytest.mark.parametrize("machine", sorted(AUDIT))


def steps(machine: str) -> list[tuple[int, int, int, int]]:
    code = build_filter(machine)
    return [struct.unpack_from("HBBI", code, start) for start in range(0, len(code), 8)]


def run(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Return what the filter says to one system call."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, AUDIT[machine] if audit is None else audit, 0, *padded)
    program, position, value = steps(machine), 0, 0
    while True:
        code, if_true, if_false, constant = program[position]
        position += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, constant)
            case 0x06:
                return constant
            case 0x15:
                position += if_true if value == constant else if_false
            case 0x35:
                position += if_true if value >= constant else if_false
            case 0x45:
                position += if_true if value & constant else if_false
            case _:
                raise AssertionError(code)


@MACHINES
def test_every_jump_lands_inside_and_the_end_is_a_return(machine: str) -> None:
    program = steps(machine)
    assert len(build_filter(machine)) % 8 == 0
    assert 0 < len(program) <= 4096
    assert program[-1][0] == 0x06
    for position, (code, if_true, if_false, constant) in enumerate(program):
        assert code in {0x20, 0x06, 0x15, 0x35, 0x45}
        if code in {0x15, 0x35, 0x45}:
            assert position + 1 + max(if_true, if_false) < len(program)
        if code == 0x20:
            assert constant % 4 == 0
            assert constant < 64


@MACHINES
def test_every_denied_call_is_refused_and_no_other(machine: str) -> None:
    denied = denied_calls(machine)
    assert len(set(denied.values())) == len(denied)
    special = {*CALLS[machine].values(), 435}
    for number in range(700):
        if number in special:
            continue
        expected = EPERM if number in denied.values() else ALLOW
        assert run(machine, number, *[2**64 - 1] * 6) == expected, number


@MACHINES
def test_what_programs_need_is_allowed(machine: str) -> None:
    assert {name: run(machine, number) for name, number in EVERYDAY[machine].items()} == (
        dict.fromkeys(EVERYDAY[machine], ALLOW)
    )


@MACHINES
def test_both_tables_deny_the_same_where_both_have_the_call(machine: str) -> None:
    only_x86 = {"uselib", "ustat", "sysfs", "iopl", "ioperm"}
    assert set(denied_calls(machine)) | only_x86 == set(denied_calls("x86_64"))


@MACHINES
def test_another_architecture_kills(machine: str) -> None:
    for audit in (0, 0x40000003, *(AUDIT[name] for name in AUDIT if name != machine)):
        assert run(machine, 0, audit=audit) == KILL


@MACHINES
def test_the_x32_numbers_do_not_exist(machine: str) -> None:
    for number in (0, 56, 165, 435, 520, 2**30 - 1):
        assert run(machine, 0x40000000 | number) == ENOSYS
    assert run(machine, 0xFFFFFFFF) == ENOSYS


@MACHINES
def test_clone_makes_threads_and_children_but_no_namespaces(machine: str) -> None:
    clone = CALLS[machine]["clone"]
    thread = 0x003D0F00
    for flags in (17, thread, thread | 0x01000000, 0x01200011):
        assert run(machine, clone, flags) == ALLOW
        for bit in (17, 25, 26, 27, 28, 29, 30):
            assert run(machine, clone, flags | 1 << bit) == EPERM
    assert run(machine, 435, 0) == ENOSYS


@MACHINES
def test_sockets_are_local_or_internet(machine: str) -> None:
    allowed = {1, 2, 10, 16}
    for family in range(64):
        expected = ALLOW if family in allowed else NO_FAMILY
        assert run(machine, CALLS[machine]["socket"], family, 1, 0) == expected
        # the kernel takes the low half only, and so does the filter
        assert run(machine, CALLS[machine]["socket"], family | 7 << 32, 1, 0) == expected


@MACHINES
def test_a_program_limits_itself_only(machine: str) -> None:
    prlimit = CALLS[machine]["prlimit64"]
    assert run(machine, prlimit, 0, 7) == run(machine, prlimit, 5 << 32, 7) == ALLOW
    for pid in (1, 2, 2**32 - 1):
        assert run(machine, prlimit, pid, 7) == EPERM


@MACHINES
def test_terminals_take_no_injected_input(machine: str) -> None:
    ioctl = CALLS[machine]["ioctl"]
    for command in (0x5412, 0x541C, 0x5412 | 1 << 32):
        assert run(machine, ioctl, 0, command) == EPERM
    for command in (0x5401, 0x5413, 0x5421):
        assert run(machine, ioctl, 0x5412, command) == ALLOW


def test_an_unknown_processor_is_refused() -> None:
    with pytest.raises(SetupError, match="riscv64"):
        build_filter("riscv64")
