"""Removing one line of the container's table turns a probe red, one at a time."""

from __future__ import annotations

import fcntl
import json
import platform
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.sandbox.docker import sandbox as module
from reward_server.sandbox.docker import volumes
from reward_server.sandbox.docker.container_config import build_config
from reward_server.sandbox.seccomp import denied_calls
from tests.integration.contract.boxes import docker, started
from tests.integration.contract.probes import (
    CONNECT,
    FORKS,
    LATE,
    POSTURE,
    SYSTEM_CALLS,
    WRITE_PUBLIC,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from reward_server.model import Execution
    from reward_server.sandbox.docker.container_config import (
        ContainerBase,
        ContainerPlan,
        SlotIdentity,
    )
    from tests.integration.contract.docker.containers import Api

    Config = dict[str, Any]
    Change = Callable[[Callable[[Config], object]], None]

PRLIMIT = {"x86_64": 302, "aarch64": 261}[platform.machine()]
ALLOW_ALL = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
LOCK_PUBLIC = """
import fcntl
try:
    file = open("/workdir/task/prepared/public/train.csv")
    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    print("LOCKED")
except BlockingIOError:
    print("REFUSED")
"""
EATS = "x = bytearray(200 << 20); x[::4096] = bytes(len(x[::4096])); print(len(x))"
FILLS = """
import os
print(os.write(os.open("big", os.O_CREAT | os.O_RDWR), b"x" * (20 << 20)))
"""


@pytest.fixture
def own_public(tmp_path: Path) -> Path:
    """A folder that a box could change if it were let."""
    tmp_path.chmod(0o777)
    return tmp_path


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Change:
    """Change the table that every container of this test is made from."""

    def install(rule: Callable[[Config], object]) -> None:
        def build(base: ContainerBase, slot: SlotIdentity, plan: ContainerPlan) -> Config:
            config = build_config(base, slot, plan)
            rule(config)
            return config

        monkeypatch.setattr(module, "build_config", build)

    return install


async def run(code: str, public: Path, **limits: Any) -> Execution:  # noqa: ANN401 - fields of Limits
    async with started(docker(1, is_warm=False), public) as bench:
        return await bench.run(code, **limits)


async def say(code: str, public: Path, **limits: Any) -> str:  # noqa: ANN401 - fields of Limits
    return (await run(code, public, **limits)).stdout_tail


async def posture(public: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await say(POSTURE, public))
    return found


async def test_the_network_probe(own_public: Path, change: Change) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        probe = CONNECT.format(port=server.getsockname()[1])
        assert await say(probe, own_public) == "REFUSED\n"

        def share_network(config: Config) -> None:
            config["NetworkDisabled"] = False
            config["HostConfig"]["NetworkMode"] = "host"
            del config["Hostname"]

        change(share_network)
        assert await say(probe, own_public) == "CONNECTED\n"


def share_public(config: Config, public: Path) -> None:
    """Mount the folder itself instead of a view of it."""
    for mount in config["HostConfig"]["Mounts"]:
        if mount["Target"].endswith("/public"):
            mount |= {"Type": "bind", "Source": str(public)}
            del mount["VolumeOptions"]


async def test_the_read_only_probe(own_public: Path, change: Change) -> None:
    assert await say(WRITE_PUBLIC, own_public) == "REFUSED\n"
    change(lambda config: share_public(config, own_public))
    assert await say(WRITE_PUBLIC, own_public) == "WRITTEN\n"


async def test_the_lock_probe(own_public: Path, change: Change) -> None:
    """What is locked outside is not locked inside: no file is the same in two boxes."""
    with (own_public / "train.csv").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert await say(LOCK_PUBLIC, own_public) == "LOCKED\n"
        change(lambda config: share_public(config, own_public))
        assert await say(LOCK_PUBLIC, own_public) == "REFUSED\n"


async def test_the_system_call_probe(own_public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own profile is below ours: these pass it."""
    limits = {"another's limits": (PRLIMIT, [1, 7, 0, 0])}
    probe = SYSTEM_CALLS.format(calls=limits)
    assert json.loads(await say(probe, own_public)) == {"another's limits": "EPERM"}
    monkeypatch.setattr(module, "build_filter", lambda: ALLOW_ALL)
    assert json.loads(await say(probe, own_public)) == {"another's limits": "OK"}


async def test_the_probe_of_both_filters(
    own_public: Path, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless = ("kcmp", "process_vm_readv", "name_to_handle_at", "add_key", "userfaultfd")
    probe = SYSTEM_CALLS.format(calls={n: (denied_calls()[n], [-1] * 6) for n in harmless})
    assert set(json.loads(await say(probe, own_public)).values()) == {"EPERM"}
    change(lambda config: config["HostConfig"]["SecurityOpt"].append("seccomp=unconfined"))
    assert set(json.loads(await say(probe, own_public)).values()) == {"EPERM"}
    monkeypatch.setattr(module, "build_filter", lambda: ALLOW_ALL)
    assert "EPERM" not in json.loads(await say(probe, own_public)).values()


def be_root(config: Config) -> None:
    config["User"] = "0:0"
    for name, options in config["HostConfig"]["Tmpfs"].items():
        config["HostConfig"]["Tmpfs"][name] = options.replace("uid=730000,gid=730000", "uid=0")


def be_root_of_a_writable_tree(config: Config) -> None:
    be_root(config)
    config["HostConfig"]["ReadonlyRootfs"] = False


POSTURES: dict[str, tuple[Callable[[Config], object], Callable[[dict[str, Any]], bool]]] = {
    "user": (be_root, lambda found: found["ids"][0] == [0, 0, 0]),
    "capabilities": (
        lambda config: config["HostConfig"].update(CapDrop=[]),
        lambda found: int(found["status"]["CapBnd"], 16) != 0,
    ),
    "read-only root": (
        be_root_of_a_writable_tree,
        lambda found: "/" in found["writable"],
    ),
    "host name": (
        lambda config: config.pop("Hostname"),
        lambda found: found["hostname"] != "box",
    ),
    "message queues": (
        lambda config: config["HostConfig"]["Ulimits"].pop(),
        lambda found: "/dev/mqueue" in found["writable"],
    ),
}


@pytest.mark.parametrize("name", POSTURES)
async def test_the_posture_probe(own_public: Path, change: Change, name: str) -> None:
    rule, looks = POSTURES[name]
    assert not looks(await posture(own_public))
    change(rule)
    assert looks(await posture(own_public))


async def test_the_process_limit_probe(own_public: Path, change: Change) -> None:
    assert int(await say(FORKS, own_public, processes=16)) < 16
    change(lambda config: config["HostConfig"].update(PidsLimit=100))
    assert int(await say(FORKS, own_public, processes=16)) == 40


async def test_the_memory_probe(own_public: Path, change: Change) -> None:
    assert await say(EATS, own_public, memory_bytes=64 << 20) == ""
    change(lambda config: config["HostConfig"].update(Memory=1 << 30, MemorySwap=1 << 30))
    assert await say(EATS, own_public, memory_bytes=64 << 20) != ""


async def test_the_disk_probe(own_public: Path, change: Change) -> None:
    assert int(await say(FILLS, own_public, disk_bytes=16 << 20)) < 20 << 20

    def make_roomy(config: Config) -> None:
        folders = config["HostConfig"]["Tmpfs"]
        folders["/box"] = folders["/box"].replace(str(16 << 20), str(32 << 20))

    change(make_roomy)
    assert int(await say(FILLS, own_public, disk_bytes=16 << 20)) == 20 << 20


@pytest.fixture
def replace_inside(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str, str], None]]:
    """Change one line of what runs inside; the changed code goes into a volume of its own."""
    before = {volume["Name"] for volume in api.volumes()["Volumes"] or ()}
    read = volumes._read_scripts

    def replace(file: str, old: str, new: str) -> None:
        files = read()
        assert old.encode() in files[file]
        files[file] = files[file].replace(old.encode(), new.encode())
        monkeypatch.setattr(volumes, "_read_scripts", lambda: files)

    yield replace
    for volume in api.volumes()["Volumes"] or ():
        if volume["Name"] not in before:
            api.remove_volume(volume["Name"])


async def test_the_link_probe(
    own_public: Path, replace_inside: Callable[[str, str, str], None]
) -> None:
    code = "import os; open('real', 'w').write('x'); os.symlink('real', 'submission.csv')"
    assert (await run(code, own_public)).artifact is None
    replace_inside("artifacts.py", "os.O_PATH | os.O_NOFOLLOW", "os.O_PATH")
    assert (await run(code, own_public)).artifact == b"x"


async def test_the_probe_of_the_container_inits_memory(
    own_public: Path, replace_inside: Callable[[str, str, str], None]
) -> None:
    code = "import os; print(len(os.listdir('/proc/1/fd')))"
    assert await say(code, own_public) == ""
    replace_inside(
        "container_init.py", "namespaces.set_dumpable(False)", "namespaces.set_dumpable(True)"
    )
    assert int(await say(code, own_public)) > 3


async def test_the_probe_of_surviving_processes(
    own_public: Path, replace_inside: Callable[[str, str, str], None]
) -> None:
    assert (await run(LATE, own_public)).artifact == b"early"
    replace_inside("container_init.py", "os.kill(-1, signal.SIGKILL)", "pass")
    assert (await run(LATE, own_public)).artifact == b"late"
