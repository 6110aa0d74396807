"""The docker sandbox: its containers, warm or new."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind
from reward_server.sandbox.docker.engine import EngineError
from tests.integration.contract.boxes import (
    DONE,
    descendants,
    docker,
    living,
    sleeper,
    started,
    unique,
)
from tests.integration.contract.docker.containers import (
    Api,
    assert_kind,
    own_containers,
    running_container,
    sleeping,
    warm_container,
)

if TYPE_CHECKING:
    from tests.integration.contract.boxes import Bench


@pytest.mark.parametrize("act", ["kill", "remove"])
async def test_a_container_lost_to_others_is_our_fault(
    container: Bench,
    api: Api,
    act: str,
) -> None:
    mark = unique("lost")
    run = await sleeping(container, mark)
    if act == "kill":
        api.kill(running_container(container).container_id)
    else:
        api.remove_container(running_container(container).container_id, force=True)
    await assert_kind(run, ErrorKind.SANDBOX_LOST)
    assert living(mark) == []
    assert (await container.run(DONE)).failure is None


async def test_a_warm_container_is_used_once(container: Bench, api: Api) -> None:
    seen: list[str] = []
    for _ in range(4):
        assert (await container.run(DONE)).failure is None
        waiting = (await warm_container(container)).container_id
        assert own_containers(api, container) == [waiting]
        seen.append(waiting)
    assert len(set(seen)) == len(seen)


async def test_a_warm_container_is_preferred_to_a_new_one(
    container: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await container.run(DONE)
    await warm_container(container)

    async def refuse(*_: object) -> None:
        message = "no more containers"
        raise EngineError(message)

    monkeypatch.setattr("reward_server.sandbox.docker.pool.open_container", refuse)
    assert (await container.run(DONE)).failure is None
    with pytest.raises(InfrastructureError):
        await container.run(DONE)


async def test_a_warm_container_that_died_is_replaced(
    container: Bench,
    api: Api,
) -> None:
    await container.run(DONE)
    box = await warm_container(container)
    api.kill(box.container_id)
    while box.is_alive:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.01)
    assert (await container.run(DONE)).failure is None


async def test_other_limits_want_another_container(container: Bench, api: Api) -> None:
    await container.run(DONE)
    first = await warm_container(container)
    assert (await container.run(DONE, memory_bytes=128 << 20)).failure is None
    second = await warm_container(container)
    assert own_containers(api, container) == [second.container_id]
    assert api.inspect_container(second.container_id)["HostConfig"]["Memory"] < 256 << 20
    assert first.container_id != second.container_id


async def test_the_limit_of_open_files_spares_the_container_init(container: Bench) -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert await container.says(code, open_files=16) == "(16, 16)\n"


MANY_FILES = """
for number in range(10**8):
    open(str(number), "w").close()
"""
ORPHANS = """
import os, time
done = 0
while done < 300:
    try:
        child = os.fork()
        if child == 0:
            os.fork()  # whose child is an orphan, and dead, at once
            os._exit(0)
        os.waitpid(child, 0)
        done += 1
    except BlockingIOError:
        time.sleep(0.01)
print(done)
"""


async def test_files_without_end_fill_the_folder(container: Bench) -> None:
    execution = await container.run(MANY_FILES)
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.DISK_LIMIT


async def test_zombies_are_reaped_while_the_program_runs(container: Bench) -> None:
    assert await container.says(ORPHANS, processes=16) == "300\n"


async def test_data_prepared_again_is_visible_at_once(container: Bench, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # noqa: ASYNC240 - a test may wait
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
    api: Api,
) -> None:
    container.sandbox._slots[0]._keeps_warm = False
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


async def test_closing_ends_what_runs_and_what_waits(public_folder: Path, api: Api) -> None:
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


async def test_nothing_is_left_after_the_end(public_folder: Path, api: Api) -> None:
    api.info()
    before = traces()
    async with started(docker(1), public_folder) as bench:
        for number in range(12):
            await bench.run((DONE, "raise ValueError", "pass")[number % 3])
        await warm_container(bench)
        warm = traces()["descriptors"]
        for number in range(12):
            await bench.run((DONE, "raise ValueError", "pass")[number % 3])
        await warm_container(bench)
        assert traces()["descriptors"] <= warm + 8  # threads have two connections each
    assert own_containers(api, bench) == []
    assert traces() == before
