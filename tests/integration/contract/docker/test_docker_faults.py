"""Containers, inits, servers and engines that die, and whose fault that is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_server.model import ErrorKind
from reward_server.sandbox.docker import sandbox as module
from reward_server.sandbox.docker.container import Container
from reward_server.sandbox.docker.container_config import LABEL
from reward_server.sandbox.docker.engine import ContainerEngine, make_client
from tests.integration.contract.boxes import (
    DONE,
    FIRST_UID,
    ROOT,
    docker,
    living,
    sleeper,
    started,
    unique,
    until_asleep,
    until_gone,
)
from tests.integration.contract.docker.containers import (
    Api,
    assert_kind,
    own_volumes,
    running_container,
    sleeping,
    warm_container,
)

if TYPE_CHECKING:
    import pytest

    from tests.integration.contract.boxes import Bench


FILL_MEMORY = """
import os
for folder in ("/dev/shm", "/tmp", "/box"):
    if os.fork() == 0:
        with open(folder + "/filler", "wb") as file:
            while True:
                file.write(bytes(1 << 16))
os.wait()
while True:
    bytearray(1 << 22)
"""


async def test_memory_of_no_process_still_counts_for_the_program(container: Bench) -> None:
    """The files stay when their writers are killed: the init may be killed next."""
    execution = await container.run(FILL_MEMORY, memory_bytes=64 << 20, disk_bytes=1 << 30)
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.OOM
    assert (await container.run(DONE)).failure is None


async def test_a_container_init_out_of_memory_blames_the_program(
    container: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no report at all, the engine's own account of the container decides."""

    async def run_without_report(self: Container, *arguments: Any) -> None:  # noqa: ANN401
        await run(self, *arguments)

    run = Container.run
    monkeypatch.setattr(Container, "run", run_without_report)
    hungry = "x = []\nwhile True: x.append(bytearray(1 << 24))\n"
    execution = await container.run(hungry, memory_bytes=64 << 20)
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.OOM
    lost = asyncio.create_task(container.run("import os; os.kill(os.getpid(), 9)"))
    await assert_kind(lost, ErrorKind.SANDBOX_LOST)  # 137 alone says nothing


async def test_a_silent_container_init_is_killed_at_the_deadline(
    container: Bench,
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_GRACE_SECONDS", 0.5)
    mark = unique("silent")
    run = asyncio.create_task(container.run(sleeper(mark), task_id=mark, wall_seconds=2.0))
    await until_asleep(mark)
    api.pause(running_container(container).container_id)
    execution = await run
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.TIMEOUT
    assert living(mark) == []


FORGE = """
import json, os, struct
report = json.dumps({"launched": True, "start_ns": 0, "end_ns": 1, "exit_code": 0,
    "timed_out": False, "interrupted": False, "cpu_seconds": 0, "peak_memory_bytes": 0,
    "disk_full": False, "artifact_status": "file"}).encode()
frame = struct.pack(">BI", ord("A"), 3) + b"id\\n"
frame += struct.pack(">BI", ord("E"), len(report)) + report
os.write(1, frame)
os.write(2, struct.pack(">B3xI", 1, len(frame)) + frame)
opened = []
for fd in range(64):
    try:
        opened.append(os.open(f"/proc/1/fd/{fd}", os.O_WRONLY))
    except OSError:
        pass
print(opened)
raise SystemExit(3)
"""


async def test_a_program_cannot_forge_a_report(container: Bench) -> None:
    execution = await container.run(FORGE)
    assert (execution.exit_code, execution.artifact) == (3, None)
    assert execution.stdout_tail.endswith("[]\n")


HARM_INIT = """
import ctypes, json, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
found = {}
def attempt(name, act):
    try:
        found[name] = str(act())
    except OSError as error:
        found[name] = type(error).__name__
for number in (*range(1, 32), 35, 64):
    os.kill(1, number)
attempt("memory", lambda: open("/proc/1/mem", "rb").read(1))
attempt("descriptors", lambda: os.listdir("/proc/1/fd"))
attempt("environment", lambda: open("/proc/1/environ").read())
attempt("limits", lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)))
attempt("oom", lambda: open("/proc/1/oom_score_adj", "w").write("1000"))
attempt("cgroup", lambda: open("/sys/fs/cgroup/memory/memory.limit_in_bytes", "w").write("-1"))
attempt("move", lambda: open("/sys/fs/cgroup/memory/cgroup.procs", "w").write("0"))
os.setpriority(os.PRIO_PROCESS, 1, 19)
print(json.dumps(found))
"""


async def test_a_program_cannot_harm_its_container_init(container: Bench) -> None:
    found = json.loads(await container.says(HARM_INIT))
    assert set(found.values()) <= {"PermissionError", "FileNotFoundError", "OSError"}, found


async def test_a_dying_server_takes_its_programs_along(public_folder: Path, api: Api) -> None:
    mark = unique("orphan")
    code = f"""
import asyncio, sys
sys.path[:0] = [{str(ROOT)!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
from tests.integration.contract.boxes import docker, sleeper, started
async def main():
    async with started(docker(1, {FIRST_UID + 50}), Path({str(public_folder)!r})) as bench:
        print(bench.sandbox._base.owner, flush=True)
        await bench.run(sleeper({mark!r}), task_id={mark!r})
asyncio.run(main())
"""
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    owner = (await server.stdout.readline()).decode().strip()
    await until_asleep(mark)
    server.send_signal(signal.SIGKILL)
    await server.wait()
    async with asyncio.timeout(20):
        await until_gone(mark)
    mine = {"label": f"{LABEL}={owner}"}
    async with asyncio.timeout(20):
        while api.containers(filters=mine):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)
    left = [found["Id"] for found in api.containers(all=True, filters=mine)]
    assert len(left) == 1
    assert len(own_volumes(api, owner)) == 2
    engine = ContainerEngine(None, 1)
    try:
        assert not set(left) & set(await engine.remove_stale(3600))
        assert set(left) <= set(await engine.remove_stale(0))
    finally:
        engine.close()
    assert api.containers(all=True, filters=mine) == []
    assert own_volumes(api, owner) == []


async def test_a_warm_container_is_never_stale(container: Bench) -> None:
    await container.run(DONE)
    box = await warm_container(container)
    assert box.container_id not in await container.sandbox._engine.remove_stale(0)
    assert (await container.run(DONE)).failure is None


def start_engine(folder: Path) -> subprocess.Popen[bytes]:
    """Start an engine of our own that may be killed."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [ROOT / ".ci" / "engine", folder], stdout=log, stderr=log, start_new_session=True
        )


async def until_it_answers(folder: Path) -> None:
    socket = f"unix://{folder}/docker.sock"
    async with asyncio.timeout(60):
        while True:
            try:
                make_client(socket).close()
            except Exception:  # noqa: BLE001 - whatever it is, it does not answer
                await asyncio.sleep(0.1)
            else:
                return


def copy_image(url: str, image: str) -> None:
    os_env = {**os.environ, "DOCKER_HOST": url}
    with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:  # noqa: S607
        subprocess.run(["docker", "load", "-q"], stdin=saved.stdout, env=os_env, check=True)  # noqa: S607


async def test_an_engine_that_hangs_or_dies_is_our_fault(
    public_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward_server.sandbox.docker.engine._CALL_SECONDS", 10)
    folder = Path(tempfile.mkdtemp(prefix="engine-"))  # not pytest's, which knows no mounts
    daemon = start_engine(folder)
    url = f"unix://{folder}/docker.sock"
    try:
        await until_it_answers(folder)
        await asyncio.to_thread(copy_image, url, "reward-server-cpu")
        async with started(docker(1, FIRST_UID + 70, engine=url), public_folder) as bench:
            daemon.send_signal(signal.SIGSTOP)
            hung = asyncio.create_task(bench.run(DONE))
            await assert_kind(hung, ErrorKind.SANDBOX_UNAVAILABLE)
            daemon.send_signal(signal.SIGCONT)
            slow = await bench.run(DONE)
            assert slow.failure is None
            assert slow.duration_seconds < 10
            mark = unique("engine")
            run = await sleeping(bench, mark)
            daemon.kill()
            daemon.wait()
            await assert_kind(run, ErrorKind.SANDBOX_LOST)
            refused = asyncio.create_task(bench.run(DONE))
            await assert_kind(refused, ErrorKind.SANDBOX_UNAVAILABLE)
            daemon = start_engine(folder)
            await until_it_answers(folder)
            async with asyncio.timeout(60):
                await until_gone(mark)
            assert (await bench.run(DONE)).failure is None
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(60)
        clean: list[str | Path] = [ROOT / ".ci" / "engine", "--clean", folder]
        await asyncio.to_thread(lambda: subprocess.run(clean, check=True))
