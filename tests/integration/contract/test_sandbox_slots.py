"""Every sandbox: many programs at once, and faults of the sandbox itself."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from reward_server.errors import InfrastructureError, SetupError
from reward_server.model import ErrorKind
from reward_server.sandbox.bubblewrap import sandbox as module
from reward_server.sandbox.bubblewrap import slot
from reward_server.sandbox.bubblewrap.cgroups import missing_limits
from tests.integration.contract.boxes import (
    DONE,
    FIRST_UID,
    MEMORY_BYTES,
    SLOTS,
    bubblewrap,
    descendants,
    living,
    own_cgroups,
    sleeper,
    started,
    unique,
    until_asleep,
    until_gone,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reward_server.model import Execution
    from reward_server.sandbox.base import Sandbox
    from tests.integration.contract.boxes import Bench


async def sleeping(bench: Bench, mark: str) -> asyncio.Task[Execution]:
    """Start a program that sleeps, and wait until it does."""
    run = asyncio.create_task(bench.run(sleeper(mark), task_id=mark))
    await until_asleep(mark)
    return run


async def assert_lost(run: asyncio.Task[Execution]) -> None:
    with pytest.raises(InfrastructureError) as caught:
        await run
    assert caught.value.kind is ErrorKind.SANDBOX_LOST


async def test_programs_at_once_have_cores_of_their_own(bench: Bench) -> None:
    code = (
        "import os, time; time.sleep(0.5)\n"
        "print(sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])"
    )
    runs = await asyncio.gather(*[bench.run(code) for _ in range(SLOTS)])
    cores = [tuple(eval(run.stdout_tail.rpartition(" ")[0])) for run in runs]  # noqa: S307
    own = sorted(os.sched_getaffinity(0))
    assert sorted({core for share in cores for core in share}) == own
    if len(own) >= SLOTS:
        assert sum(map(len, cores)) == len(own)
    assert [int(run.stdout_tail.split()[-1]) for run in runs] == [len(share) for share in cores]
    assert all(run.queue_seconds < run.duration_seconds for run in runs)


async def test_a_wide_program_has_the_cores_of_several_slots(bench: Bench) -> None:
    code = (
        "import os\n"
        "print(sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])\n"
        "os.sched_setaffinity(0, range(os.cpu_count()))\n"
        "print(len(os.sched_getaffinity(0)))\n"
    )
    own = sorted(os.sched_getaffinity(0))
    wide = min(SLOTS, len(own))
    narrow, seen, after = await asyncio.gather(
        bench.run("import time; time.sleep(0.3)"),
        bench.says(code, cores=wide),
        bench.says(code),
    )
    assert narrow.exit_code == 0
    listed, _, threads = seen.splitlines()[0].rpartition(" ")
    assert int(threads) == len(eval(listed)) >= wide  # noqa: S307
    assert len(eval(after.splitlines()[0].rpartition(" ")[0])) < len(own) or len(own) < SLOTS  # noqa: S307
    if not missing_limits():
        assert seen.splitlines()[1] == threads, "its cgroup has the same cores"


async def test_programs_that_want_much_memory_take_turns(bench: Bench) -> None:
    code = "import time; time.sleep(0.3)"
    wanted = MEMORY_BYTES * 2 // 3
    first, second = await asyncio.gather(*[bench.run(code, memory_bytes=wanted) for _ in range(2)])
    assert second.queue_seconds >= first.duration_seconds


async def test_the_next_program_waits_its_turn(bench: Bench) -> None:
    code = "import time; time.sleep(0.3)"
    runs = await asyncio.gather(*[bench.run(code) for _ in range(3 * SLOTS)])
    waited = [run.queue_seconds for run in runs]  # they asked at once, one after the other
    assert all(earlier < later + 0.1 for earlier, later in itertools.pairwise(waited)), waited
    assert waited[SLOTS] >= 0.3
    assert waited[2 * SLOTS] >= 0.6


async def test_a_cancelled_program_is_dead_and_its_slot_free(bench: Bench) -> None:
    marks = [unique("cancelled") for _ in range(SLOTS)]
    runs = [await sleeping(bench, mark) for mark in marks]
    waiting = asyncio.create_task(bench.run(DONE))
    for run in (waiting, *runs):
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert [line for mark in marks for line in living(mark)] == []
    after = await asyncio.gather(*[bench.run(DONE) for _ in range(SLOTS)])
    assert [execution.failure for execution in after] == [None] * SLOTS


async def test_a_program_cancelled_while_its_box_is_built_leaves_nothing(single: Bench) -> None:
    for number in range(32):
        mark = unique("early")
        if number % 4:  # the others are cancelled while their supervisor starts
            await single.sandbox._slots[0].start()
        run = asyncio.create_task(single.run(sleeper(mark), task_id=mark))
        await asyncio.sleep(0.001 * number)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert living(mark) == []
    assert (await single.run(DONE)).failure is None


def supervisor_of(bench: Bench) -> int:
    pid: int = bench.sandbox._slots[0]._process.pid
    return pid


async def test_a_slot_supervisor_killed_mid_run_is_our_fault_and_replaced(single: Bench) -> None:
    mark = unique("supervisor")
    run = await sleeping(single, mark)
    os.kill(supervisor_of(single), signal.SIGKILL)
    await assert_lost(run)
    await until_gone(mark)
    assert (await single.run(DONE)).failure is None


async def test_a_slot_supervisor_killed_between_runs_is_replaced(single: Bench) -> None:
    for _ in range(2):
        os.kill(supervisor_of(single), signal.SIGKILL)
        single.sandbox._slots[0]._process.wait()
        assert (await single.run(DONE)).failure is None


async def test_a_slot_supervisor_that_hangs_is_replaced(
    single: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await single.run(DONE)
    monkeypatch.setattr(module, "_BOOT_SECONDS", 0.2)
    monkeypatch.setattr(module, "_GRACE_SECONDS", 0.2)
    monkeypatch.setattr("reward_server.sandbox.bubblewrap.slot._END_SECONDS", 0.2)
    os.kill(supervisor_of(single), signal.SIGSTOP)
    await assert_lost(asyncio.create_task(single.run(DONE, wall_seconds=0.2)))
    monkeypatch.undo()
    assert (await single.run(DONE)).failure is None


async def test_a_box_killed_from_outside_is_our_fault(single: Bench) -> None:
    mark = unique("monitor")
    run = await sleeping(single, mark)
    (monitor,) = psutil.Process(supervisor_of(single)).children()
    monitor.kill()
    await assert_lost(run)
    assert living(mark) == []
    assert (await single.run(DONE)).failure is None


async def test_a_box_that_cannot_be_built_is_our_fault(single: Bench) -> None:
    gone = type(single)(single.sandbox, single.public / "gone")
    with pytest.raises(InfrastructureError) as caught:
        await gone.run(DONE)
    assert caught.value.kind is ErrorKind.SANDBOX_UNAVAILABLE
    assert (await single.run(DONE)).failure is None


async def test_a_slot_supervisor_that_cannot_start_fails_the_start(
    make_single: Callable[[int], Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "reward_server.sandbox.bubblewrap.slot.SUPERVISOR_SCRIPT", Path("/nonexistent.py")
    )
    sandbox = make_single(1)
    with pytest.raises(SetupError):
        await sandbox.start()
    await sandbox.aclose()


async def test_an_interrupt_from_the_server_ends_the_run(single: Bench) -> None:
    mark = unique("interrupt")
    run = await sleeping(single, mark)
    for _ in range(3):
        single.sandbox._slots[0].interrupt()
    await assert_lost(run)
    assert living(mark) == []
    assert (await single.run(DONE)).failure is None


async def test_two_sandboxes_do_not_disturb_each_other(single: Bench) -> None:
    async with started(bubblewrap(1, FIRST_UID + 100), single.public) as other:
        hungry = "x = []\nwhile True: x.append(bytearray(1 << 24))\n"
        calm = "import time; time.sleep(1)\nx = bytearray(100 << 20)\nraise SystemExit(1)"
        one, two = await asyncio.gather(
            single.run(hungry, memory_bytes=64 << 20), other.run(calm, memory_bytes=512 << 20)
        )
        assert one.failure is not None
        assert one.failure.kind is (ErrorKind.NONZERO_EXIT if missing_limits() else ErrorKind.OOM)
        assert two.failure is not None
        assert two.failure.kind is ErrorKind.NONZERO_EXIT, "the neighbour's evidence is not ours"
    assert (await single.run(DONE)).failure is None


async def test_closing_ends_what_runs_and_what_waits(
    make_single: Callable[[int], Sandbox], public_folder: Path
) -> None:
    mark = unique("closing")
    async with started(make_single(1), public_folder) as bench:
        run = await sleeping(bench, mark)
        waiting = asyncio.create_task(bench.run(DONE))
        await asyncio.sleep(0)
    async with asyncio.timeout(20):  # much less than the run's own deadline
        await assert_lost(run)
        with pytest.raises(InfrastructureError):
            await waiting
    assert living(mark) == []


def open_files() -> int:
    """Count them; the minimum leaves out those that other threads have open for a moment."""
    looks = []
    for _ in range(5):
        time.sleep(0.01)
        looks.append(len(list(Path("/proc/self/fd").iterdir())))
    return min(looks)


def traces() -> dict[str, Any]:
    gc.collect()
    return {
        "descriptors": open_files(),
        "processes": descendants(),
        "groups": own_cgroups(),
    }


async def test_nothing_is_left_after_the_end(
    make_single: Callable[[int], Sandbox], public_folder: Path
) -> None:
    before = traces()
    async with started(make_single(1), public_folder) as bench:
        await bench.run(DONE)
        warm = traces()
        assert warm["processes"] > before["processes"]
        for number in range(50):
            await bench.run((DONE, "raise ValueError", "pass")[number % 3])
        run = await sleeping(bench, unique("cancelled"))
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        run = await sleeping(bench, unique("lost"))
        os.kill(supervisor_of(bench), signal.SIGKILL)
        await assert_lost(run)
        await bench.run(DONE)
        assert traces()["descriptors"] == warm["descriptors"]
    assert not any(folder.exists() for folder in bench.sandbox._folders)
    assert traces() == before


LEAVES = """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
part = libc.shmget(0, 300 << 20, 0o1600)
address = libc.shmat(part, None, 0)
ctypes.memset(address, 1, 300 << 20)
"""


async def test_memory_left_by_the_previous_box_is_freed_first(
    single: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel frees shared memory with its IPC namespace, some time after the last process."""
    group, left = single.sandbox._slots[0].group, []
    limit = group.limit

    def limit_and_measure(memory_bytes: int, processes: int) -> None:
        left.append(group.leftover_bytes())
        limit(memory_bytes, processes)

    monkeypatch.setattr(group, "limit", limit_and_measure)
    for code in (LEAVES, "pass", LEAVES, "pass"):
        assert await single.says(code) == ""
    assert len(left) == 4
    assert max(left) <= 1 << 20


async def test_a_slot_whose_memory_is_not_freed_is_unavailable(
    single: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot, "_CLEAN_SECONDS", 0.1)
    monkeypatch.setattr(single.sandbox._slots[0].group, "leftover_bytes", lambda: 1 << 30)
    with pytest.raises(InfrastructureError) as raised:
        await single.run("pass")
    assert raised.value.kind is ErrorKind.SANDBOX_UNAVAILABLE
