"""What the docker sandbox promises about its containers, and about faults of the engine."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from boxes import (
    DONE,
    FIRST_UID,
    LIMITS,
    ROOT,
    descendants,
    docker,
    living,
    sleeper,
    started,
    unique,
    until_asleep,
    until_gone,
)

from reward_server.errors import InfrastructureError, SetupError
from reward_server.model import ErrorKind
from reward_server.sandbox import docker as module
from reward_server.sandbox import docker_box
from reward_server.sandbox.docker_engine import Engine, EngineError, describe, make_client
from reward_server.sandbox.docker_posture import LABEL, Kit, Place, Plan, build_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boxes import Bench

    from reward_server.model import Execution
    from reward_server.sandbox.docker_box import DockerBox


@pytest.fixture(scope="session")
def api() -> Iterator[Any]:
    client = make_client(None)
    yield client
    client.close()


async def sleeping(bench: Bench, mark: str) -> asyncio.Task[Execution]:
    run = asyncio.create_task(bench.run(sleeper(mark), task_id=mark))
    await until_asleep(mark)
    return run


async def assert_kind(run: asyncio.Task[Execution], kind: ErrorKind) -> None:
    with pytest.raises(InfrastructureError) as caught:
        await run
    assert caught.value.kind is kind


def running_box(bench: Bench) -> DockerBox:
    (box,) = bench.sandbox._running
    assert isinstance(box, docker_box.DockerBox)
    return box


async def ahead(bench: Bench) -> DockerBox:
    """Return the container that was made ahead."""
    box: DockerBox = await asyncio.shield(bench.sandbox._slots[0]._ahead)
    return box


def own_containers(api: Any, bench: Bench) -> list[str]:  # noqa: ANN401 - no types
    wanted = {"label": f"{LABEL}={bench.sandbox._kit.owner}"}
    return [found["Id"] for found in api.containers(all=True, filters=wanted)]


@pytest.mark.parametrize("act", ["kill", "remove"])
async def test_a_container_lost_to_others_is_our_fault(
    container: Bench,
    api: Any,  # noqa: ANN401
    act: str,
) -> None:
    mark = unique("lost")
    run = await sleeping(container, mark)
    if act == "kill":
        api.kill(running_box(container).container)
    else:
        api.remove_container(running_box(container).container, force=True)
    await assert_kind(run, ErrorKind.SANDBOX_LOST)
    assert living(mark) == []
    assert (await container.run(DONE)).failure is None


async def test_a_container_made_ahead_is_used_once(container: Bench, api: Any) -> None:  # noqa: ANN401
    seen: list[str] = []
    for _ in range(4):
        assert (await container.run(DONE)).failure is None
        waiting = (await ahead(container)).container
        assert own_containers(api, container) == [waiting]
        seen.append(waiting)
    assert len(set(seen)) == len(seen)


async def test_a_container_made_ahead_is_the_one_that_is_used(
    container: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await container.run(DONE)
    await ahead(container)

    async def refuse(*_: object) -> None:
        message = "no more containers"
        raise EngineError(message)

    monkeypatch.setattr("reward_server.sandbox.docker_pool.open_box", refuse)
    assert (await container.run(DONE)).failure is None
    with pytest.raises(InfrastructureError):
        await container.run(DONE)


async def test_a_container_that_died_waiting_is_replaced_unnoticed(
    container: Bench,
    api: Any,  # noqa: ANN401
) -> None:
    await container.run(DONE)
    box = await ahead(container)
    api.kill(box.container)
    while box.is_alive:  # noqa: ASYNC110 - nothing would tell us
        await asyncio.sleep(0.01)
    assert (await container.run(DONE)).failure is None


async def test_other_limits_want_another_container(container: Bench, api: Any) -> None:  # noqa: ANN401
    await container.run(DONE)
    first = await ahead(container)
    assert (await container.run(DONE, memory_bytes=128 << 20)).failure is None
    second = await ahead(container)
    assert own_containers(api, container) == [second.container]
    assert api.inspect_container(second.container)["HostConfig"]["Memory"] < 256 << 20
    assert first.container != second.container


async def test_data_prepared_anew_is_seen_at_once(container: Bench, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    public = tmp_path / "public"
    bench = type(container)(container.sandbox, public)
    for content in ("old", "new"):
        fresh = tmp_path / content
        fresh.mkdir()
        (fresh / "train.csv").write_text(content)
        if public.exists():
            public.rename(tmp_path / "gone")
        fresh.rename(public)
        code = "print(open('/workdir/task/prepared/public/train.csv').read())"
        assert await bench.says(code) == f"{content}\n"


async def test_public_data_that_is_not_there_is_our_fault(container: Bench) -> None:
    gone = type(container)(container.sandbox, container.public / "gone")
    await assert_kind(asyncio.create_task(gone.run(DONE)), ErrorKind.SANDBOX_UNAVAILABLE)
    assert (await container.run(DONE)).failure is None


async def test_a_program_cancelled_while_its_container_is_made_leaves_nothing(
    container: Bench,
    api: Any,  # noqa: ANN401
) -> None:
    container.sandbox._slots[0]._is_warm = False
    for number in range(12):
        mark = unique("early")
        run = asyncio.create_task(container.run(sleeper(mark), task_id=mark))
        await asyncio.sleep(0.03 * number)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert living(mark) == []
    assert own_containers(api, container) == []
    assert (await container.run(DONE)).failure is None


async def test_closing_ends_what_runs_and_what_waits(public_folder: Path, api: Any) -> None:  # noqa: ANN401
    mark = unique("closing")
    async with started(docker(1), public_folder) as bench:
        run = await sleeping(bench, mark)
        waiting = asyncio.create_task(bench.run(DONE))
        await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await assert_kind(run, ErrorKind.SANDBOX_LOST)
        await assert_kind(waiting, ErrorKind.SANDBOX_UNAVAILABLE)
        await assert_kind(asyncio.create_task(bench.run(DONE)), ErrorKind.SANDBOX_UNAVAILABLE)
    assert living(mark) == []
    assert own_containers(api, bench) == []


def traces() -> dict[str, Any]:
    gc.collect()
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "processes": descendants(),
        "threads": {t.name for t in threading.enumerate() if t.name.startswith("engine")},
    }


async def test_nothing_is_left_after_the_end(public_folder: Path, api: Any) -> None:  # noqa: ANN401
    api.info()
    before = traces()
    async with started(docker(1), public_folder) as bench:
        for number in range(12):
            await bench.run((DONE, "raise ValueError", "pass")[number % 3])
        await ahead(bench)
        warm = traces()["descriptors"]
        for number in range(12):
            await bench.run((DONE, "raise ValueError", "pass")[number % 3])
        await ahead(bench)
        assert traces()["descriptors"] <= warm + 2  # a thread may have opened its connection
    assert own_containers(api, bench) == []
    assert traces() == before


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


async def test_memory_that_belongs_to_no_process_is_still_the_programs(container: Bench) -> None:
    """The files stay when their writers are killed: the warden may well be next."""
    execution = await container.run(FILL_MEMORY, memory_bytes=64 << 20, disk_bytes=1 << 30)
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.OOM
    assert (await container.run(DONE)).failure is None


async def test_a_warden_out_of_memory_is_the_programs_doing(
    container: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no report at all, the engine's own account of the container decides."""

    async def no_report(self: DockerBox, *_: object) -> None:
        original = run(self, *_)  # type: ignore[arg-type]
        await original

    run = docker_box.DockerBox.run
    monkeypatch.setattr(docker_box.DockerBox, "run", no_report)
    hungry = "x = []\nwhile True: x.append(bytearray(1 << 24))\n"
    execution = await container.run(hungry, memory_bytes=64 << 20)
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.OOM
    lost = asyncio.create_task(container.run("import os; os.kill(os.getpid(), 9)"))
    await assert_kind(lost, ErrorKind.SANDBOX_LOST)  # 137 alone says nothing


async def test_a_silent_warden_is_ended_at_the_deadline(
    container: Bench, api: Any, monkeypatch: pytest.MonkeyPatch  # noqa: ANN401
) -> None:
    monkeypatch.setattr(module, "_GRACE_SECONDS", 0.5)
    mark = unique("silent")
    run = asyncio.create_task(container.run(sleeper(mark), task_id=mark, wall_seconds=2.0))
    await until_asleep(mark)
    api.pause(running_box(container).container)
    execution = await run
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.TIMEOUT
    assert living(mark) == []


FORGE = """
import json, os, struct
report = json.dumps({"launched": True, "start_ns": 0, "end_ns": 1, "status": 0, "timed_out": False,
    "killed": False, "cpu_seconds": 0, "peak_memory_bytes": 0, "disk_full": False,
    "artifact": "file"}).encode()
frame = struct.pack(">BI", ord("A"), 3) + b"id\\n" + struct.pack(">BI", ord("E"), len(report)) + report
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


async def test_a_program_cannot_make_a_report(container: Bench) -> None:
    execution = await container.run(FORGE)
    assert (execution.exit_code, execution.artifact) == (3, None)
    assert execution.stdout_tail.endswith("[]\n")


WARDEN = """
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


async def test_a_program_cannot_harm_its_warden(container: Bench) -> None:
    import json  # noqa: PLC0415

    found = json.loads(await container.says(WARDEN))
    assert set(found.values()) <= {"PermissionError", "FileNotFoundError", "OSError"}, found


async def test_a_server_that_dies_takes_its_programs_along(public_folder: Path, api: Any) -> None:  # noqa: ANN401
    mark = unique("orphan")
    code = f"""
import asyncio, sys
sys.path[:0] = [{str(ROOT)!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
from boxes import docker, sleeper, started
async def main():
    async with started(docker(1, {FIRST_UID + 50}), Path({str(public_folder)!r})) as bench:
        print(bench.sandbox._kit.owner, flush=True)
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
        while api.containers(filters=mine):  # noqa: ASYNC110 - nothing would tell us
            await asyncio.sleep(0.05)
    left = [found["Id"] for found in api.containers(all=True, filters=mine)]
    assert len(left) == 1
    engine = Engine(None, 1)
    try:
        assert not set(left) & set(await engine.remove_stale(3600))
        assert set(left) <= set(await engine.remove_stale(0))
    finally:
        engine.close()
    assert api.containers(all=True, filters=mine) == []


async def test_what_lives_is_never_stale(container: Bench) -> None:
    await container.run(DONE)
    box = await ahead(container)
    assert box.container not in await container.sandbox._engine.remove_stale(0)
    assert (await container.run(DONE)).failure is None


def example_plan(public: Path) -> Plan:
    return Plan.of("task", str(public), (0, 0), LIMITS)


async def test_the_engine_makes_what_the_table_says(container: Bench, api: Any) -> None:  # noqa: ANN401
    await container.run(DONE)
    seen = api.inspect_container((await ahead(container)).container)
    sandbox = container.sandbox
    wanted = build_config(
        sandbox._kit, sandbox._slots[0].place, example_plan(container.public)
    )
    host, config = wanted.pop("HostConfig"), seen["Config"]
    differing = {
        key: (value, config.get(key))
        for key, value in wanted.items()
        if config.get(key) != value and key not in {"Env", "NetworkDisabled"}
    }
    assert differing == {}
    assert set(wanted["Env"]) <= set(config["Env"])
    assert seen["NetworkSettings"]["Networks"].keys() == {"none"}
    made = seen["HostConfig"]
    differing = {
        key: (value, made.get(key))
        for key, value in host.items()
        if (made.get(key) or None) != (value or None) and key != "Ulimits"
    }
    assert differing == {}
    assert sorted(map(str, made["Ulimits"])) == sorted(map(str, host["Ulimits"]))
    assert seen["Image"] == sandbox._kit.image


def test_devices_are_asked_for_by_name(api: Any, container: Bench) -> None:  # noqa: ANN401
    """No such device is here; the engine keeps the request as it was sent."""
    place = Place(FIRST_UID, (0,), ("GPU-1", "GPU-2"))
    config = build_config(container.sandbox._kit, place, example_plan(container.public))
    made = api.create_container_from_config(config)["Id"]
    try:
        (request,) = api.inspect_container(made)["HostConfig"]["DeviceRequests"]
    finally:
        api.remove_container(made)
    assert request["DeviceIDs"] == ["GPU-1", "GPU-2"]
    assert request["Capabilities"] == [["gpu", "compute"]]


async def test_a_device_that_is_not_there_is_our_fault(public_folder: Path) -> None:
    sandbox = docker(1, gpus=("GPU-1",))
    with pytest.raises(SetupError, match="no container can be started"):
        await sandbox.start()
    await sandbox.aclose()


async def test_devices_are_shared_out_among_the_slots() -> None:
    sandbox = docker(2, gpus=("0", "1", "2"))
    sandbox._prove = lambda: asyncio.sleep(0)  # type: ignore[method-assign]
    try:
        await sandbox.start()
        assert [slot.place.gpus for slot in sandbox._slots] == [("0", "2"), ("1",)]
    finally:
        await sandbox.aclose()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"engine": "unix:///nonexistent.sock"}, "install and start Docker"),
        ({"runtime": "no-such-runtime"}, "no container can be started"),
    ],
)
async def test_what_is_missing_is_said_at_the_start(more: dict[str, str], text: str) -> None:
    sandbox = docker(1, **more)
    with pytest.raises(SetupError, match=text):
        await sandbox.start()
    await sandbox.aclose()


def test_an_image_that_is_missing_is_said_with_its_remedy() -> None:
    with pytest.raises(SetupError, match="make images"):
        describe(None, "no-such-image")


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


async def test_an_engine_that_dies_is_our_fault(
    tmp_path_factory: pytest.TempPathFactory, public_folder: Path
) -> None:
    folder = tmp_path_factory.mktemp("engine")
    engine = start_engine(folder)
    url = f"unix://{folder}/docker.sock"
    try:
        await until_it_answers(folder)
        await asyncio.to_thread(copy_image, url, "reward-server-cpu")
        async with started(docker(1, FIRST_UID + 70, engine=url), public_folder) as bench:
            mark = unique("engine")
            run = await sleeping(bench, mark)
            engine.kill()
            engine.wait()
            await assert_kind(run, ErrorKind.SANDBOX_LOST)
            refused = asyncio.create_task(bench.run(DONE))
            await assert_kind(refused, ErrorKind.SANDBOX_UNAVAILABLE)
            engine = start_engine(folder)
            await until_it_answers(folder)
            async with asyncio.timeout(60):
                await until_gone(mark)
            assert (await bench.run(DONE)).failure is None
    finally:
        engine.send_signal(signal.SIGTERM)
        engine.wait(60)


