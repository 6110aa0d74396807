"""What a program finds when it inspects its own box."""

from __future__ import annotations

import json
import os
import platform
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.sandbox.seccomp import denied_calls
from tests.integration.contract.boxes import FIRST_UID, LIMITS, SLOTS, after
from tests.integration.contract.probes import POSTURE, SYSTEM_CALLS

if TYPE_CHECKING:
    from tests.integration.contract.boxes import Bench

# These numbers are the same on both processors we have tables for.
CLONE3 = 435
NUMBERS = {
    "x86_64": {
        "socket": 41,
        "clone": 56,
        "ioctl": 16,
        "getpid": 39,
        "seccomp": 317,
        "prlimit": 302,
    },
    "aarch64": {
        "socket": 198,
        "clone": 220,
        "ioctl": 29,
        "getpid": 172,
        "seccomp": 277,
        "prlimit": 261,
    },
}[platform.machine()]
SIGCHLD = 17


@pytest.fixture(scope="module")
async def posture(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await bench.says(POSTURE))
    return {**found, "kind": bench.sandbox.box.kind}


def test_it_has_an_unprivileged_account(posture: dict[str, Any]) -> None:
    users, groups, more = posture["ids"]
    accounts = range(FIRST_UID, FIRST_UID + SLOTS) if posture["kind"] == "docker" else [1000]
    assert users[0] in accounts
    assert users == groups == [users[0]] * 3
    # An ordinary user cannot give up groups; those the box does not know show as nobody's.
    unknown = set() if os.geteuid() == 0 else {1000, 65534}
    assert set(more) <= (set(groups) if posture["kind"] == "docker" else unknown)
    assert posture["hostname"] == "box"


@pytest.mark.parametrize("name", ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
def test_it_has_no_capability(posture: dict[str, Any], name: str) -> None:
    assert int(posture["status"][name], 16) == 0


def test_it_can_gain_nothing(posture: dict[str, Any]) -> None:
    assert posture["status"]["NoNewPrivs"] == "1"
    assert posture["status"]["Seccomp"] == "2"
    mounts = posture["mounts"].values()
    if posture["kind"] == "docker":  # its root is the image's, read-only
        mounts = [options for options in mounts if "rw" in options]
    assert all("nosuid" in options for options in mounts)


def test_it_has_no_network(posture: dict[str, Any]) -> None:
    assert posture["interfaces"] == ["lo"]


def test_it_can_write_to_three_folders_only(posture: dict[str, Any]) -> None:
    assert posture["writable"] == ["/box", "/dev/shm", "/tmp"]  # noqa: S108
    devices = {"null", "zero", "full", "random", "urandom", "tty", "pts"}
    shown = {"/proc", *(f"/dev/{name}" for name in devices), *posture["writable"]}
    if posture["kind"] == "docker":  # root's, and no program is root
        shown |= {"/dev", "/dev/mqueue", "/sys/fs/cgroup"}
    open_mounts = {path for path, options in posture["mounts"].items() if "rw" in options}
    assert {path for path in open_mounts if not path.startswith("/proc/")} <= shown


def test_it_sees_no_folder_it_does_not_need(posture: dict[str, Any]) -> None:
    assert not {"mem", "kmem", "kvm", "fuse", "vda", "sda", "vsock"} & set(posture["dev"])
    if posture["kind"] == "docker":  # the image's folders, which `sandbox_images/scan` looks at
        return
    host = {"home", "etc", "var", "sys", "run", "boot", "srv", "opt", "mnt", "media"}
    assert host & set(posture["root"]) <= {"etc", "opt", "home"}  # where an interpreter may live
    assert set(posture["etc"]) <= {"alternatives", "ld.so.cache", "localtime", "mime.types"}


def test_its_environment_is_ours_alone(posture: dict[str, Any]) -> None:
    threads = {"OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS"}
    # The variables of the last kind are set by packages where these are imported.
    own = {name for name in posture["environment"] if not name.startswith("KMP_")}
    assert own == {
        *("PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "LANG", "PWD", "MPLBACKEND"),
        *("PYTHONNOUSERSITE", "PYTHONDONTWRITEBYTECODE", "HF_HUB_OFFLINE"),
        *("TRANSFORMERS_OFFLINE", "LOKY_MAX_CPU_COUNT", "PIP_NO_INDEX"),
        *(f"{pool}_NUM_THREADS" for pool in threads),
    }
    assert posture["environment"]["HOME"] == "/tmp"  # noqa: S108


def test_it_holds_the_three_streams_only(posture: dict[str, Any]) -> None:
    assert set(posture["fds"]) == {"0", "1", "2"}
    assert posture["fds"]["0"] == "/dev/null"


async def test_its_marker_channel_is_not_in_the_way_and_not_inherited(bench: Bench) -> None:
    code = (
        "import os, subprocess\nfirst = os.open('/dev/null', 0)\n"
        "inherited = subprocess.run(['ls', '/proc/self/fd'], close_fds=False, "
        "capture_output=True, text=True).stdout.split()\n"
        "print(first, len(inherited))"
    )
    execution = await bench.run(code, after(code, "import os"))
    assert execution.stdout_tail == "3 4\n"


def test_it_sees_the_processes_of_its_box_only(posture: dict[str, Any]) -> None:
    assert posture["processes"][0] == 1
    assert len(posture["processes"]) <= 3


def test_its_limits_are_those_it_was_given(posture: dict[str, Any]) -> None:
    assert posture["limits"] == {"core": [0, 0], "open files": [LIMITS.open_files] * 2}


async def test_it_is_the_first_to_go_when_memory_runs_out(bench: Bench) -> None:
    assert await bench.says("print(open('/proc/self/oom_score_adj').read())") == "1000\n\n"


async def attempts(bench: Bench, calls: dict[str, tuple[int, list[int]]]) -> dict[str, str]:
    answers: dict[str, str] = json.loads(await bench.says(SYSTEM_CALLS.format(calls=calls)))
    return answers


async def test_every_denied_system_call_is_refused(bench: Bench) -> None:
    # six arguments that no call accepts: what the filter lets through fails with another error
    calls = {name: (number, [-1] * 6) for name, number in denied_calls().items()}
    assert await attempts(bench, calls) == dict.fromkeys(calls, "EPERM")


async def test_calls_that_depend_on_their_arguments(bench: Bench) -> None:
    socket, clone, ioctl = NUMBERS["socket"], NUMBERS["clone"], NUMBERS["ioctl"]
    families = {"unix": 1, "inet": 2, "inet6": 10}
    refused = {"packet": 17, "alg": 38, "vsock": 40, "bluetooth": 31, "can": 29, "xdp": 44}
    namespaces = [0x20000, *(1 << bit for bit in range(25, 31))]
    found = await attempts(
        bench,
        {
            "clone3": (CLONE3, [0, 0]),
            "getpid": (NUMBERS["getpid"], []),
            "own limits": (NUMBERS["prlimit"], [0, 7, 0, 0]),
            "another's limits": (NUMBERS["prlimit"], [1, 7, 0, 0]),
            "ioctl TIOCSTI": (ioctl, [0, 0x5412, 0]),
            "ioctl TIOCLINUX": (ioctl, [0, 0x541C, 0]),
            "ioctl other": (ioctl, [-1, 0x5413, 0]),
            **{name: (socket, [number, 1, 0]) for name, number in families.items()},
            **{name: (socket, [number, 3, 0]) for name, number in refused.items()},
            **{f"clone {flag:#x}": (clone, [flag | SIGCHLD, 0, 0, 0, 0]) for flag in namespaces},
        },
    )
    assert found == {
        "clone3": "ENOSYS",
        "getpid": "OK",
        "own limits": "OK",
        "another's limits": "EPERM",
        "ioctl TIOCSTI": "EPERM",
        "ioctl TIOCLINUX": "EPERM",
        "ioctl other": "EBADF",
        **dict.fromkeys(families, "OK"),
        **dict.fromkeys(refused, "EAFNOSUPPORT"),
        **{f"clone {flag:#x}": "EPERM" for flag in namespaces},
    }
