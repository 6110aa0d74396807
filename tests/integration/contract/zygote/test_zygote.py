"""Programs that are forked from a process that imported their packages."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from reward_server.errors import InfrastructureError, SetupError
from reward_server.model import ErrorKind
from reward_server.sandbox.bubblewrap import command
from tests.integration.contract.boxes import (
    DONE,
    PRELOAD,
    bubblewrap,
    full_zygote,
    living,
    sleeper,
    started,
    unique,
    until_asleep,
    zygote,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.contract.boxes import Bench

IMPORTED = "import sys; print([m for m in ('numpy', 'pandas', 'lightgbm') if m in sys.modules])"


@pytest.fixture(scope="module")
async def warm(public_folder: Path) -> AsyncIterator[Bench]:
    async with started(zygote(1), public_folder) as bench:
        yield bench


def inside(bench: Bench) -> list[psutil.Process]:
    """Return the zygote server and its zygote."""
    supervisor = psutil.Process(bench.sandbox._slots[0]._process.pid)
    below = supervisor.children(recursive=True)
    return [one for one in below if one.cmdline()[:1] == ["/environment/bin/python"]]


async def test_the_execution_names_the_kind_of_sandbox(warm: Bench) -> None:
    assert (await warm.run(DONE)).box.kind == "zygote"


async def test_packages_are_there_before_the_program_begins(warm: Bench) -> None:
    assert "['numpy', 'pandas']" in await warm.says(f"{IMPORTED}\nimport numpy")


async def test_a_program_that_names_no_package_is_not_forked_from_them(warm: Bench) -> None:
    bare = "import sys; print(len([m for m in sys.modules if m.startswith('num' + 'py')]))"
    assert await warm.says(bare) == "0\n"


@pytest.mark.parametrize("module", ["lightgbm", "statsmodels.api", "xml.dom.minidom"])
async def test_other_packages_can_be_imported_as_ever(warm: Bench, module: str) -> None:
    assert (
        await warm.says(f"import numpy\nimport {module} as m; print(m.__name__)") == f"{module}\n"
    )


async def test_siblings_draw_different_numbers(warm: Bench) -> None:
    code = (
        "import random, uuid, tempfile, numpy as np\n"
        "print(np.random.rand(), np.random.default_rng().random(), random.random(), uuid.uuid4(),"
        " tempfile.mktemp(), sep='\\n')"
    )
    runs = [(await warm.says(code)).splitlines() for _ in range(3)]
    for draws in zip(*runs, strict=True):
        assert len(set(draws)) == len(runs), draws


async def test_a_seeded_program_draws_what_it_would_draw_anywhere(
    warm: Bench, public_folder: Path
) -> None:
    code = "import numpy as np, random; np.random.seed(3); random.seed(3)\n"
    code += "print(np.random.rand(3), random.random())"
    async with started(bubblewrap(1), public_folder) as cold:
        assert await warm.says(code) == await cold.says(code)


async def test_nothing_a_program_does_to_a_package_reaches_the_next(warm: Bench) -> None:
    spoil = "import numpy as np, sys, os, builtins\nnp.mean = None; sys.modules['pandas'] = None\n"
    spoil += "os.environ['LEFT'] = '1'; builtins.left = 1; os.chdir('/tmp'); os.umask(0)\n"
    spoil += "import warnings; warnings.simplefilter('error'); sys.path.clear()\n"
    await warm.says(spoil)
    look = "import os, builtins, sys, numpy as np, pandas as pd\n"
    look += "print(np.mean([1.0, 3.0]), pd.DataFrame({'a': [1]}).shape, 'LEFT' in os.environ,"
    look += " hasattr(builtins, 'left'), os.getcwd(), oct(os.umask(0)), len(sys.path) > 1)"
    assert await warm.says(look) == "2.0 (1, 1) False False /box 0o22 True\n"


async def test_nothing_of_the_ancestors_is_in_reach(warm: Bench) -> None:
    code = """
import numpy, os, sys
print(sorted(os.listdir('/proc/self/fd')), os.getppid())
print([pid for pid in os.listdir('/proc') if pid.isdigit()], os.getpid())
for path in ('/proc/1/environ', '/proc/1/mem', '/proc/1/maps', '/proc/1/root', '/stage'):
    try:
        os.listdir(path) if path.endswith(('stage', 'root')) else open(path, 'rb').read(1)
        print('REACHED', path)
    except OSError:
        pass
try:
    print(os.listdir('/proc/1/fd'))
except OSError:
    print([])
own = ('fd_channel', 'forker', 'zygote_server', 'launcher', 'namespaces', 'program_exit', 'markers')
print([name for name in sys.modules if name in own])
"""
    seen = await warm.says(code)
    assert "REACHED" not in seen
    assert seen.splitlines() == ["['0', '1', '2', '3'] 0", "['1', '2'] 2", "[]", "[]"]


async def test_killing_the_first_process_of_the_box_does_nothing(warm: Bench) -> None:
    code = "import os, signal\nfor s in (9, 15, 19, 11): os.kill(1, s)\nprint('on')"
    assert await warm.says(code) == "on\n"
    assert (await warm.run(DONE)).failure is None


CYCLE = """
class A: pass
a = A(); a.me = a; a.f = open('submission.csv', 'w'); a.f.write('id')
def use(): return a
"""
THREAD = """
import threading, time
threading.Thread(target=lambda: (time.sleep({seconds}), print('t')), daemon={daemon}).start()
"""
CHILD = """
import os
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
print('parent' if pid else 'child')
"""
POOL = """
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(2) as pool:
    print(list(pool.map(abs, [-1, -2])))
"""
ENDINGS = {
    "an open file": ("f = open('submission.csv', 'w'); f.write('id\\n1\\n')", 0, ""),
    "an open file in a cycle": (CYCLE, 0, ""),
    "exit functions": ("import atexit; atexit.register(print, 'bye')", 0, "bye\n"),
    "a finalizer": ("class A:\n    def __del__(self): print('gone')\na = A()", 0, "gone\n"),
    "a thread": (THREAD.format(seconds=0.2, daemon=False), 0, "t\n"),
    "a daemon thread": (THREAD.format(seconds=60, daemon=True), 0, ""),
    "no newline": ("import sys; sys.stdout.write('end')", 0, "end"),
    "a code": ("raise SystemExit(7)", 7, ""),
    "a large code": ("raise SystemExit(256 + 3)", 3, ""),
    "a text": ("raise SystemExit('words')", 1, ""),
    "a bool": ("raise SystemExit(True)", 1, ""),
    "an exception in an exit function": ("import atexit; atexit.register(lambda: 1 / 0)", 0, ""),
    "a shut output": ("import sys; sys.stdout.close()", 0, ""),
    "a child that falls off the end": (CHILD, 0, "child\nparent\n"),
    "abort": ("import os; os.abort()", 134, ""),
    "its own kill": ("import os; os.kill(os.getpid(), 9)", 137, ""),
    "a process pool": (POOL, 0, "[1, 2]\n"),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_a_program_ends_as_the_interpreter_would_end_it(
    ended: dict[str, list[Any]], name: str
) -> None:
    code, exit_code, output = ENDINGS[name]
    for execution in ended[name]:
        assert (execution.exit_code, execution.stdout_tail) == (exit_code, output), code
    assert len({execution.artifact for execution in ended[name]}) == 1
    if "file" in name:
        assert ended[name][0].artifact


@pytest.fixture(scope="module")
async def ended(public_folder: Path) -> dict[str, list[Any]]:
    """The same endings in a cold box, in a bare fork and in one with the packages."""
    found: dict[str, list[Any]] = {name: [] for name in ENDINGS}
    for make in (bubblewrap, zygote, full_zygote):
        async with started(make(1), public_folder) as bench:
            for name, (code, _, _) in ENDINGS.items():
                found[name].append(await bench.run(code))
    return found


async def test_the_parent_has_one_thread_and_never_computes(public_folder: Path) -> None:
    async with started(full_zygote(1), public_folder) as bench:
        await bench.says("print(1)")
        before = [process.cpu_times() for process in inside(bench)]
        spin = "import time\nwhile time.process_time() < 1: sum(range(1000))"
        await bench.says(f"import numpy as np\nx = np.ones((300, 300))\nx @ x\n{spin}")
        after = inside(bench)
        assert [process.num_threads() for process in after] == [1, 1]
        for one, two in zip(before, (process.cpu_times() for process in after), strict=True):
            assert two.user + two.system - one.user - one.system < 0.5, "a second was computed"


async def test_a_package_that_is_not_installed_is_skipped(
    public_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sandbox = zygote(1)
    sandbox._preload = ("numpy", "not_a_package")
    async with started(sandbox, public_folder) as bench:
        assert await bench.says("import numpy; print(numpy.mean([1.0]))") == "1.0\n"
    assert "not_a_package is not preloaded" in capfd.readouterr().err


async def test_a_package_that_starts_a_thread_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    scripts = tmp_path / "inside"
    shutil.copytree(command.SCRIPTS, scripts)
    start = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
    (scripts / "starts_a_thread.py").write_text(start)
    monkeypatch.setattr(command, "SCRIPTS", scripts)
    sandbox = zygote(1)
    sandbox._preload = ("starts_a_thread",)
    try:
        with pytest.raises(SetupError):
            await sandbox.start()
    finally:
        await sandbox.aclose()
    assert "2 threads after the imports" in capfd.readouterr().err


async def test_all_cores_of_a_wide_slot_are_used(public_folder: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    code = "import numpy, os, threadpoolctl\nprint(os.environ['OMP_NUM_THREADS'],"
    code += " [pool['num_threads'] for pool in threadpoolctl.threadpool_info()])"
    cores = len(os.sched_getaffinity(0))
    sandbox = zygote(1)
    sandbox._preload = (*PRELOAD, "threadpoolctl")
    async with started(sandbox, public_folder) as bench:
        seen = await bench.says(code)
        words = seen.replace("[", " ").replace("]", " ").replace(",", " ").split()
        assert set(words) == {str(cores)}, seen


@pytest.mark.parametrize("which", [0, 1], ids=["zygote server", "zygote"])
async def test_a_process_that_died_between_programs_is_replaced(
    public_folder: Path, which: int
) -> None:
    async with started(full_zygote(1), public_folder) as bench:
        inside(bench)[which].kill()
        await asyncio.sleep(0.1)
        assert (await bench.run(DONE)).failure is None


def with_short_answer_timeout(folder: Path) -> Path:
    """Return a slot supervisor that waits for its zygote server for a second only."""
    scripts = shutil.copytree(command.SCRIPTS, folder)
    launchers = scripts / "box_launchers.py"
    timeouts = "_IMPORT_SECONDS, _ANSWER_SECONDS = 120.0, 10.0"
    text = launchers.read_text()
    assert timeouts in text
    launchers.write_text(text.replace(timeouts, timeouts.replace("10.0", "1.0")))
    return scripts / "slot_supervisor.py"


@pytest.mark.parametrize("which", [0, 1], ids=["zygote server", "zygote"])
async def test_a_process_that_hangs_is_replaced_and_no_program_lost(
    public_folder: Path, which: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward_server.sandbox.bubblewrap.sandbox._BOOT_SECONDS", 3.0)
    script = with_short_answer_timeout(tmp_path / "supervisor")
    monkeypatch.setattr("reward_server.sandbox.bubblewrap.slot.SUPERVISOR_SCRIPT", script)
    async with started(full_zygote(1), public_folder) as bench:
        inside(bench)[which].suspend()
        assert (await bench.run(DONE)).failure is None
        assert len(inside(bench)) == 2


async def test_a_zygote_server_killed_mid_run_is_our_fault(public_folder: Path) -> None:
    async with started(full_zygote(1), public_folder) as bench:
        mark = unique("zygote")
        run = asyncio.create_task(bench.run(sleeper(mark), task_id=mark))
        await until_asleep(mark)
        inside(bench)[0].send_signal(signal.SIGKILL)
        with pytest.raises(InfrastructureError) as caught:
            await run
        assert caught.value.kind is ErrorKind.SANDBOX_LOST
        assert living(mark) == []
        assert (await bench.run(DONE)).failure is None


@pytest.fixture
def new_data(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    (tmp_path / "new.csv").write_text("new")
    return tmp_path


async def test_data_prepared_later_is_seen(public_folder: Path, new_data: Path) -> None:
    async with started(zygote(1), public_folder) as bench:
        await bench.run(DONE)
        later = type(bench)(bench.sandbox, new_data)
        assert (
            await later.says("print(open('/workdir/task/prepared/public/new.csv').read())")
            == "new\n"
        )
        assert (await bench.run(DONE)).failure is None
