"""Every sandbox: when a duration is flagged as contended, and when a program stalls."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from reward_server.model import ErrorKind
from reward_server.sandbox.bubblewrap.cgroups import NoCgroup, missing_limits
from tests.integration.contract.boxes import DONE, LIMITS, bubblewrap, started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.contract.boxes import Bench

pytestmark = pytest.mark.alone
BUSY = (
    "import time\n"
    "end = time.process_time() + 1.5\n"
    "while time.process_time() < end:\n"
    "    sum(range(1000))\n"
)
THREADS = (
    "import hashlib, threading\n"
    "def work():\n"
    "    for _ in range(20): hashlib.sha256(bytes(8 << 20)).digest()\n"
    "threads = [threading.Thread(target=work) for _ in range(6)]\n"
    "for thread in threads: thread.start()\n"
    "for thread in threads: thread.join()\n"
)

counts_stalls = pytest.mark.skipif(
    not Path("/proc/pressure/cpu").exists(), reason="this kernel does not count stalls"
)


@contextmanager
def hogs() -> Iterator[None]:
    """Keep every core busy from outside of any slot."""
    code = "import os; os.sched_setaffinity(0, [{}]); print(flush=True)\nwhile True: pass"
    running = [
        subprocess.Popen([sys.executable, "-c", code.format(core)], stdout=subprocess.PIPE)
        for core in sorted(os.sched_getaffinity(0)) * 2
    ]
    try:
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in running:
            process.kill()
            process.communicate()


def busy_seconds() -> float:
    """Return what all cores of the machine have worked so far."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait)


@counts_stalls
async def test_a_run_held_up_from_outside_is_contended(bench: Bench) -> None:
    with hogs():
        execution = await bench.run(BUSY)
    assert execution.exit_code == 0
    assert execution.pressure is not None
    assert execution.contended
    assert execution.pressure > 0.2


async def test_a_sleeping_program_is_never_contended(bench: Bench) -> None:
    if bench.sandbox.box.kind == "docker" or missing_limits():
        pytest.skip("stalls are counted for the machine, not for each box")
    with hogs():
        execution = await bench.run("import time; time.sleep(2)")
    assert not execution.contended, execution.pressure


@counts_stalls
async def test_threads_that_wait_for_each_other_are_no_contention(bench: Bench) -> None:
    for _ in range(5):
        before = busy_seconds()
        execution = await bench.run(THREADS)
        others = busy_seconds() - before - execution.cpu_seconds
        assert execution.exit_code == 0
        if not execution.contended:
            return
        assert others > 0.1 * execution.duration_seconds, "nobody else was at work"
    pytest.skip("others were at work on this machine all the time")


async def test_a_program_that_hangs_is_ended_and_its_output_kept(bench: Bench) -> None:
    code = "import time; print('before', flush=True); time.sleep(600)"
    execution = await bench.run(code, stall_seconds=1.0)
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.TIMEOUT
    assert execution.failure.message == "the program made no progress for 1 seconds"
    assert execution.stdout_tail == "before\n"
    assert 1.0 <= execution.duration_seconds < LIMITS.wall_seconds
    assert (await bench.run(DONE)).failure is None


async def test_a_program_that_only_polls_hangs_too(bench: Bench) -> None:
    code = "import time\nwhile True: time.sleep(0.2)"
    execution = await bench.run(code, stall_seconds=1.0)
    assert execution.failure is not None
    assert "no progress" in execution.failure.message


@pytest.mark.parametrize(
    "code",
    [
        "import time\nfor _ in range(10): print('.', flush=True); time.sleep(0.2)",
        "import time, sys\nfor _ in range(10): print('.', file=sys.stderr); time.sleep(0.2)",
        "import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass",
        "import os\nif os.fork() == 0:\n    for _ in range(40_000_000): pass\nelse: os.wait()",
    ],
    ids=["prints", "prints-errors", "computes", "child-computes"],
)
async def test_a_program_that_does_something_goes_on(bench: Bench, code: str) -> None:
    execution = await bench.run(code, stall_seconds=1.0)
    assert execution.exit_code == 0, execution


async def test_without_cgroups_the_processes_are_measured(
    public_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward_server.sandbox.bubblewrap.slot.make_group", lambda *_: NoCgroup())
    busy = "import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass"
    async with started(bubblewrap(1), public_folder) as bench:
        assert (await bench.run(busy, stall_seconds=1.0)).exit_code == 0
        execution = await bench.run("import time; time.sleep(60)", stall_seconds=1.0)
    assert execution.failure is not None
    assert "no progress" in execution.failure.message
