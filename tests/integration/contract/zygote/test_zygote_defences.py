"""Removing one defence from what runs beside the programs turns its probe red, one at a time."""

from __future__ import annotations

import json
import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from reward_server.errors import InfrastructureError, SetupError
from reward_server.sandbox.bubblewrap import cgroups, command, slot
from reward_server.sandbox.bubblewrap import sandbox as module
from tests.integration.contract.boxes import (
    FIRST_UID,
    account_of,
    small_zygote,
    started,
    unlimit_processes,
)
from tests.integration.contract.probes import FORKS, LATE, WRITE_PUBLIC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from tests.integration.contract.boxes import Bench

ALLOW_ALL = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
UID = FIRST_UID + 400


@pytest.fixture(scope="module")
async def intact(public_folder: Path) -> AsyncIterator[Bench]:
    async with started(small_zygote(1, UID), public_folder) as bench:
        yield bench


@pytest.fixture
def remove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have the next sandbox made from scripts in which some texts are others."""
    scripts = tmp_path / "inside"
    shutil.copytree(command.SCRIPTS, scripts)

    def change(*changes: tuple[str, str, str]) -> None:
        for name, old, new in changes:
            text = (scripts / name).read_text()
            assert text.count(old) == 1, (name, old)
            (scripts / name).write_text(text.replace(old, new))
        monkeypatch.setattr(command, "SCRIPTS", scripts)

    return change


STATUS = """
status = dict(line.rstrip().split(":", 1) for line in open("/proc/self/status"))
print("HOLDS" if {claim} else "FALLS")
"""
REFUSED = """
import os
try:
    {attempt}
    print("FALLS")
except OSError:
    print("HOLDS")
"""
FILLS = "os.write(os.open('big', os.O_CREAT | os.O_RDWR), bytes(20 << 20)) < 20 << 20 and open('')"
FILES = "[open(str(number), 'x').close() for number in range(6000)]"


@dataclass(frozen=True, slots=True)
class Defence:
    """What is taken out of which script, and a program that notices."""

    changes: tuple[tuple[str, str, str], ...]
    probe: str


DEFENCES: Mapping[str, Defence] = {
    "no capability": Defence(
        (
            (
                "namespaces.py",
                '_check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")',
                "pass",
            ),
        ),
        STATUS.format(claim="int(status['CapEff'], 16) == int(status['CapPrm'], 16) == 0"),
    ),
    "no capability ever": Defence(
        (("namespaces.py", "in range(_CAPABILITIES)", "in range(0)"),),
        STATUS.format(claim="int(status['CapBnd'], 16) == 0"),
    ),
    "system call filter": Defence(
        (
            (
                "namespaces.py",
                "_check(_libc.prctl(_SET_FILTER, _FILTER_MODE, ctypes.byref(program), 0, 0)",
                "(program",
            ),
        ),
        STATUS.format(claim="status['Seccomp'].strip() == '2'"),
    ),
    "ordinary user": Defence(
        (("zygote_server.py", "_USER = 1000", "_USER = 0"),),
        "import os; print('HOLDS' if os.getresuid() == (1000,) * 3 else 'FALLS')",
    ),
    "hidden stage": Defence(
        (
            (
                "zygote_server.py",
                '"tmpfs", _STAGE, "tmpfs", namespaces',
                '"tmpfs", "/tmp", "tmpfs", namespaces',
            ),
        ),
        REFUSED.format(attempt="os.listdir('/stage')"),
    ),
    "read-only data folder": Defence(
        (
            (
                "zygote_server.py",
                'namespaces.mount(None, "/workdir", None, read_only | _FLAGS)',
                "pass",
            ),
        ),
        REFUSED.format(attempt="open('/workdir/planted', 'x')"),
    ),
    "disk size": Defence(
        (("zygote_server.py", "size={request['disk_bytes']},nr_inodes", "nr_inodes"),),
        REFUSED.format(attempt=FILLS),
    ),
    "number of files": Defence(
        (("zygote_server.py", "nr_inodes={inodes},", ""),), REFUSED.format(attempt=FILES)
    ),
    "own processes": Defence(
        (
            (
                "zygote_server.py",
                'namespaces.mount("proc", "/proc", "proc", _FLAGS | namespaces.NO_EXEC)',
                "pass",
            ),
        ),
        "import os\nfound = [name for name in os.listdir('/proc') if name.isdigit()]\n"
        "print('HOLDS' if sorted(found) == ['1', '2'] else 'FALLS')",
    ),
    "box init's memory": Defence(
        (("zygote_server.py", "namespaces.set_dumpable(False)", "namespaces.set_dumpable(True)"),),
        REFUSED.format(attempt="open('/proc/1/maps').read(1)"),
    ),
    "first to go when memory runs out": Defence(
        (("launcher.py", '_write("/proc/self/oom_score_adj", b"1000")', "pass"),),
        "score = open('/proc/self/oom_score_adj').read()\n"
        "print('HOLDS' if int(score) == 1000 else 'FALLS')",
    ),
    "a session of its own": Defence(
        (("forker.py", "os.setsid()", "pass"),),
        "import os; print('HOLDS' if os.getsid(0) == os.getpid() else 'FALLS')",
    ),
}


@pytest.mark.parametrize("name", DEFENCES)
async def test_removing_a_defence_makes_its_probe_fail(
    public_folder: Path, intact: Bench, remove: Callable[..., None], name: str
) -> None:
    defence = DEFENCES[name]
    assert await intact.says(defence.probe) == "HOLDS\n"
    remove(*defence.changes)
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        assert (await bench.run(defence.probe)).stdout_tail == "FALLS\n"


NAMESPACES = (
    "import json, os; print(json.dumps({n: os.readlink('/proc/self/ns/' + n) for n in %r}))"
)
JOINED = {"net": "namespaces.NETWORK", "ipc": "namespaces.IPC", "uts": "namespaces.HOST_NAME"}


def namespace_of(pid: int, name: str) -> str:
    return str(Path(f"/proc/{pid}/ns/{name}").readlink())


async def shared_namespaces(bench: Bench) -> set[str]:
    """Return which namespaces a program shares with the process it was forked from."""
    own = json.loads(await bench.says(NAMESPACES % sorted(JOINED)))
    supervisor = psutil.Process(bench.sandbox._slots[0]._process.pid)
    below = supervisor.children(recursive=True)
    (parent, *_) = (p for p in below if p.cmdline()[:1] == ["/environment/bin/python"])
    return {name for name in own if namespace_of(parent.pid, name) == own[name]}


@pytest.mark.parametrize("name", JOINED)
async def test_a_program_is_in_the_namespaces_of_its_own_box(
    public_folder: Path, intact: Bench, remove: Callable[..., None], name: str
) -> None:
    assert await shared_namespaces(intact) == set()
    join = "namespaces.enter(fds.pop(), _JOINED)"
    remove(("forker.py", join, join.replace("_JOINED", f"_JOINED & ~{JOINED[name]}")))
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        assert await shared_namespaces(bench) == {name}


async def test_a_box_has_a_network_of_its_own(
    public_folder: Path, intact: Bench, remove: Callable[..., None]
) -> None:
    assert await shared_namespaces(intact) == set()
    remove(
        ("zygote_server.py", "        | namespaces.NETWORK\n", ""),
        ("zygote_server.py", "    _bring_up_loopback()\n", ""),
        ("forker.py", "namespaces.MOUNTS | namespaces.NETWORK |", "namespaces.MOUNTS |"),
    )
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        assert await shared_namespaces(bench) == {"net"}


async def test_no_nested_namespaces_even_without_a_filter(
    public_folder: Path, remove: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "build_filter", lambda: ALLOW_ALL)
    probe = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        assert await bench.says(probe) == "-1\n"
    remove(("zygote_server.py", '_write("/proc/sys/user/max_user_namespaces", "0")', "pass"))
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        assert await bench.says(probe) == "0\n"


@pytest.fixture
def own_public(tmp_path: Path) -> Path:
    """A folder that a box could change if it were let."""
    tmp_path.chmod(0o777)
    return tmp_path


async def test_public_data_is_read_only(own_public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(small_zygote(1, UID + 1), own_public) as bench:
        assert await bench.says(WRITE_PUBLIC) == "REFUSED\n"
    monkeypatch.setattr(command.Sources, "show", lambda _, *folders: ("--bind", *folders))
    async with started(small_zygote(1, UID + 1), own_public) as bench:
        assert await bench.says(WRITE_PUBLIC) == "WRITTEN\n"


async def test_a_box_ends_with_its_program(
    public_folder: Path, intact: Bench, remove: Callable[..., None]
) -> None:
    """Without that defence the slot supervisor still ends the box when its time is up."""
    assert (await intact.run(LATE)).artifact == b"early"
    remove(
        ("zygote_server.py", "signal.pidfd_send_signal(handle, signal.SIGKILL)", "pass"),
        ("zygote_server.py", "os.waitpid(pid, 0)", "select.select([handle], [], [])"),
    )
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        assert (await bench.run(LATE, wall_seconds=5.0)).artifact == b"late"


INTERRUPT = "import os, time\nos.kill(1, 2)\ntime.sleep(0.5)\nprint('on')"


async def test_a_program_cannot_end_its_box_init(
    public_folder: Path, intact: Bench, remove: Callable[..., None]
) -> None:
    assert await intact.says(INTERRUPT) == "on\n"
    handler = "signal.signal(signal.SIGINT, signal.SIG_DFL)"
    remove(
        ("zygote_server.py", handler, "signal.signal(signal.SIGINT, signal.default_int_handler)")
    )
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        with pytest.raises(InfrastructureError):
            await bench.run(INTERRUPT)


async def test_siblings_draw_different_numbers(
    public_folder: Path, intact: Bench, remove: Callable[..., None]
) -> None:
    code = "import numpy as np; print(np.random.rand())"
    assert await intact.says(code) != await intact.says(code)
    remove(("forker.py", "random.seed(list(os.urandom(16)))", "pass"))
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        assert await bench.says(code) == await bench.says(code)


@pytest.mark.skipif(bool(cgroups.missing_limits()), reason="no groups on this machine")
async def test_the_number_of_processes_is_limited(
    public_folder: Path, intact: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert int((await intact.run(FORKS, processes=16)).stdout_tail) < 18
    unlimit_processes(monkeypatch)
    async with started(small_zygote(1, UID + 1), public_folder) as bench:
        assert int((await bench.run(FORKS, processes=16)).stdout_tail) == 40


def without_root_drop(folder: Path) -> Path:
    """Return a slot supervisor that stays root."""
    scripts = shutil.copytree(command.SCRIPTS, folder / "root")
    script = scripts / "slot_supervisor.py"
    drop = 'slot_setup.drop_root(config["uid"])'
    assert drop in script.read_text()
    script.write_text(script.read_text().replace(drop, "pass"))
    return script


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has nothing to drop")
async def test_a_program_is_the_slots_account(
    public_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await account_of(small_zygote(1, UID + 1), public_folder) == UID + 1
    script = without_root_drop(tmp_path)
    monkeypatch.setattr(slot, "SUPERVISOR_SCRIPT", script)
    with pytest.raises(SetupError):  # root of the host cannot even build a box
        await account_of(small_zygote(1, UID + 1), public_folder)
