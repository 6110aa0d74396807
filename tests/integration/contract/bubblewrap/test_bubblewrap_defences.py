"""Removing one defence turns its probe red: a check that cannot fail is a defect."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import struct
from typing import TYPE_CHECKING

import psutil
import pytest

from reward_server.sandbox.bubblewrap import cgroups, command, slot
from reward_server.sandbox.bubblewrap import sandbox as module
from reward_server.sandbox.inside import artifacts
from reward_server.sandbox.seccomp import denied_calls
from tests.integration.contract.boxes import (
    FIRST_UID,
    account_of,
    bubblewrap,
    living,
    sleeper,
    started,
    unique,
    unlimit_processes,
    until_asleep,
    until_gone,
)
from tests.integration.contract.probes import (
    CONNECT,
    FORKS,
    LATE,
    POSTURE,
    SYSTEM_CALLS,
    WRITE_PUBLIC,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Rule = Callable[[list[str]], list[str]]
    Change = Callable[[Rule], None]
    ChangeScript = Callable[[str, str, str], None]

ALLOW_ALL = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
SHARED_NETWORK = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"]
SHARED_PROCESSES = ["--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-uts"]


@pytest.fixture
def own_public(tmp_path: Path) -> Path:
    """A folder that a box could change if it were let."""
    tmp_path.chmod(0o777)
    return tmp_path


@pytest.fixture
def change_command(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Change the command line that every box of this test is built with."""
    build = command.build_command

    def change(rule: Rule) -> None:
        monkeypatch.setattr(command, "build_command", lambda *arguments: rule(build(*arguments)))

    return change


def without(arguments: list[str], *parts: str) -> list[str]:
    """Return the command line without one run of words, which must be there."""
    for start in range(len(arguments)):
        if tuple(arguments[start : start + len(parts)]) == parts:
            return arguments[:start] + arguments[start + len(parts) :]
    raise AssertionError(parts)


def sharing(arguments: list[str], namespaces: list[str]) -> list[str]:
    """Return the command line with these namespaces of its own instead of all."""
    position = arguments.index("--unshare-all")
    return [*arguments[:position], *namespaces, *arguments[position + 1 :]]


async def say(code: str, public: Path) -> str:
    async with started(bubblewrap(1), public) as bench:
        return await bench.says(code)


async def test_the_network_probe(own_public: Path, change_command: Change) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        probe = CONNECT.format(port=server.getsockname()[1])
        assert await say(probe, own_public) == "REFUSED\n"
        change_command(lambda arguments: sharing(arguments, SHARED_NETWORK))
        assert await say(probe, own_public) == "CONNECTED\n"
        interfaces = json.loads(await say(POSTURE, own_public))["interfaces"]
        assert interfaces == [name for _, name in socket.if_nameindex()]


async def test_the_read_only_probe(own_public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await say(WRITE_PUBLIC, own_public) == "REFUSED\n"

    monkeypatch.setattr(command.Sources, "show", lambda _, *folders: ("--bind", *folders))
    assert await say(WRITE_PUBLIC, own_public) == "WRITTEN\n"
    assert (own_public / "planted").exists()


async def test_the_system_call_probe(own_public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = ("kcmp", "process_vm_readv", "name_to_handle_at", "add_key", "userfaultfd")
    calls = {name: (denied_calls()[name], [-1] * 6) for name in harmless}
    probe = SYSTEM_CALLS.format(calls=calls)
    assert set(json.loads(await say(probe, own_public)).values()) == {"EPERM"}
    monkeypatch.setattr(module, "build_filter", lambda: ALLOW_ALL)
    found = json.loads(await say(probe, own_public))
    assert [name for name, answer in found.items() if answer == "EPERM"] == []


@pytest.mark.parametrize(
    ("parts", "looks"),
    [
        (("--seccomp", "4"), lambda posture: posture["status"]["Seccomp"] == "0"),
        (("--hostname", "box"), lambda posture: posture["hostname"] != "box"),
        (("--uid", "1000", "--gid", "1000"), lambda posture: posture["ids"][0] != [1000] * 3),
        (("--remount-ro", "/"), lambda posture: "/" in posture["writable"]),
        (("--remount-ro", "/dev"), lambda posture: "/dev" in posture["writable"]),
        (("--remount-ro", "/proc"), lambda posture: "rw" in posture["mounts"]["/proc"]),
        (("--new-session",), lambda posture: posture["session"][0] == 0),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
async def test_the_posture_probe(
    own_public: Path,
    change_command: Change,
    parts: tuple[str, ...],
    looks: Callable[[dict[str, object]], bool],
) -> None:
    assert not looks(json.loads(await say(POSTURE, own_public)))
    change_command(lambda arguments: without(arguments, *parts))
    assert looks(json.loads(await say(POSTURE, own_public)))


async def test_the_disk_probe(own_public: Path, change_command: Change) -> None:
    code = "import os; os.write(os.open('big', os.O_CREAT | os.O_RDWR), b'x' * (20 << 20))\n"
    code += "print(os.stat('big').st_size)"
    assert int(await say(code, own_public)) < 20 << 20
    change_command(lambda arguments: [
        *arguments[: arguments.index("/box") - 5],
        *arguments[arguments.index("/box") - 3 :],
    ])  # fmt: skip
    assert int(await say(code, own_public)) == 20 << 20


async def test_the_orphan_probe(own_public: Path, change_command: Change) -> None:
    """A box outlives its slot supervisor only without `--die-with-parent`."""

    async def kill_the_supervisor(timeout_seconds: float) -> list[str]:
        mark = unique("orphan")
        async with started(bubblewrap(1), own_public) as bench:
            run = asyncio.create_task(bench.run(sleeper(mark), task_id=mark))
            await until_asleep(mark)
            bench.sandbox._slots[0]._process.kill()
            with pytest.raises(Exception, match="lost"):
                await run
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_seconds):
                    await until_gone(mark)
            return living(mark)

    assert await kill_the_supervisor(20) == []
    change_command(lambda arguments: without(arguments, "--die-with-parent"))
    left = await kill_the_supervisor(0.5)
    try:
        assert left != []
    finally:
        for process in psutil.process_iter():
            if any(line in " ".join(cmdline(process)) for line in left):
                process.kill()


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def test_the_link_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "submission.csv").symlink_to("secret")
    folder = os.open(tmp_path, os.O_PATH)
    try:
        assert artifacts.open_artifact(folder, "submission.csv", 100) == ("refused", None)
        monkeypatch.setattr("reward_server.sandbox.inside.artifacts.os.O_NOFOLLOW", 0)
        kind, descriptor = artifacts.open_artifact(folder, "submission.csv", 100)
        assert kind == "file"
        assert descriptor is not None
        os.close(descriptor)
    finally:
        os.close(folder)


@pytest.fixture
def change_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChangeScript:
    """Start slot supervisors from scripts in which one text is replaced by another."""

    def change(name: str, old: str, new: str) -> None:
        scripts = shutil.copytree(command.SCRIPTS, tmp_path / "supervisor")
        text = (scripts / name).read_text()
        assert old in text
        (scripts / name).write_text(text.replace(old, new))
        monkeypatch.setattr(slot, "SUPERVISOR_SCRIPT", scripts / "slot_supervisor.py")

    return change


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has nothing to drop")
async def test_the_account_probe(own_public: Path, change_supervisor: ChangeScript) -> None:
    """Seen from outside, a program is the slot's account; without the drop it is root."""
    assert await account_of(bubblewrap(1), own_public) == FIRST_UID
    change_supervisor("slot_supervisor.py", 'slot_setup.drop_root(config["uid"])', "pass")
    assert await account_of(bubblewrap(1), own_public) == 0


async def test_the_probe_of_surviving_processes(
    own_public: Path, change_command: Change, change_supervisor: ChangeScript
) -> None:
    """Two defences back each other up: the process namespace, and the supervisor as reaper."""

    async def left() -> bytes | None:
        async with started(bubblewrap(1), own_public) as bench:
            return (await bench.run(LATE)).artifact

    assert await left() == b"early"
    change_command(lambda arguments: sharing(arguments, SHARED_PROCESSES))
    assert await left() == b"early"
    change_supervisor(
        "box_launchers.py", "            _kill_children()\n            if pid", "            if pid"
    )
    assert await left() == b"late"


@pytest.mark.skipif(bool(cgroups.missing_limits()), reason="no groups on this machine")
async def test_the_process_limit_probe(own_public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def forked() -> int:
        async with started(bubblewrap(1), own_public) as bench:
            return int((await bench.run(FORKS, processes=16)).stdout_tail)

    assert await forked() < 18  # of our own some are allowed for
    unlimit_processes(monkeypatch)
    assert await forked() == 40
