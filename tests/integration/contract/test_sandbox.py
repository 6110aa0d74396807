"""Every sandbox: how one program is run and what its execution contains."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.model import (
    ErrorKind,
    Failure,
    Instrumentation,
    Instrumented,
    Milestone,
    Program,
)
from reward_server.sandbox.bubblewrap.cgroups import missing_limits
from tests.integration.contract.boxes import DONE, after, living, unique

if TYPE_CHECKING:
    from tests.integration.contract.boxes import Bench

FILL_DISK = """
with open("filler", "wb") as file:
    while True:
        file.write(b"x" * 65536)
        file.flush()
"""
EAT = "x = []\nwhile True: x.append(bytearray(1 << 24))\n"
FORK = """
import os, time
children = []
while True:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
"""
SPAM = "while True: print('A' * 65536)\n"


@pytest.mark.parametrize(
    ("code", "limits", "expected", "without_cgroups"),
    [
        ("pass", {}, "no_submission", None),
        (DONE, {}, None, None),
        ("raise ValueError", {}, "nonzero_exit", None),
        ("import os; os.kill(os.getpid(), 9)", {}, "nonzero_exit", None),
        ("import os; os.abort()", {}, "nonzero_exit", None),
        ("while True: pass", {"wall_seconds": 0.3}, "timeout", None),
        (SPAM, {"output_bytes": 1 << 20}, "output_limit", None),
        (FILL_DISK, {"disk_bytes": 1 << 20}, "disk_limit", None),
        (EAT, {"memory_bytes": 96 << 20}, "oom", "nonzero_exit"),
        (FORK, {"processes": 16}, "pids_limit", "nonzero_exit"),
        (DONE, {"artifact_bytes": 4}, "invalid_submission", None),
        ("import os; os.mkdir('submission.csv')", {}, "invalid_submission", None),
        # what is left behind does not count when the program failed
        (DONE + "raise ValueError", {}, "nonzero_exit", None),
        (DONE + "while True: pass", {"wall_seconds": 0.3}, "timeout", None),
        # several at once: the stronger evidence names the failure
        (FILL_DISK.replace("file.flush()", "file.flush(); print('A' * 65536)"),
         {"disk_bytes": 1 << 20, "output_bytes": 4 << 20}, "disk_limit", None),
        ("import os\nif os.fork() == 0:\n    " + EAT.replace("\n", "\n    ") + "\nos.wait()\n"
         "while True: pass\n", {"memory_bytes": 96 << 20, "wall_seconds": 1.5}, "oom", "timeout"),
        # a limit that was met but survived is no failure
        ("import os\nif os.fork() == 0:\n    " + EAT.replace("\n", "\n    ") + "\nos.wait()\n"
         + DONE, {"memory_bytes": 96 << 20}, None, None),
        ("try:\n    " + FILL_DISK.replace("\n", "\n    ") + "\nexcept OSError: pass\n"
         "import os; os.remove('filler')\n" + DONE, {"disk_bytes": 1 << 20}, None, None),
    ],
)  # fmt: skip
async def test_the_end_of_a_program_has_one_name(
    bench: Bench,
    code: str,
    limits: dict[str, Any],
    expected: str | None,
    without_cgroups: str | None,
) -> None:
    execution = await bench.run(code, **limits)
    if missing_limits() and without_cgroups is not None:
        expected = without_cgroups
    kind = execution.failure.kind if execution.failure else None
    assert kind == expected, execution


async def test_a_program_that_already_failed_is_not_run(bench: Bench) -> None:
    failure = Failure(ErrorKind.SYNTAX_ERROR, "the program does not parse")
    instrumented = Instrumented(Program("1 +"), (), Instrumentation("off"), failure)
    execution = await bench.sandbox.execute(instrumented, "task", bench.public, None)
    assert execution.failure == failure
    assert execution.exit_code is None


async def test_the_duration_lasts_to_the_death_of_the_last_process(bench: Bench) -> None:
    slept = await bench.run("import time; time.sleep(0.3)")
    assert slept.duration_seconds >= 0.3
    assert slept.boot_seconds > 0
    ended = await bench.run("while True: pass", wall_seconds=0.4)
    assert ended.duration_seconds >= 0.4


async def test_cpu_seconds_count_work_and_not_waiting(bench: Bench) -> None:
    asleep = await bench.run("import time; time.sleep(0.5)")
    busy = await bench.run("import time\nwhile time.process_time() < 0.5: pass")
    in_a_child = await bench.run(
        "import os, time\nif os.fork() == 0:\n"
        "    while time.process_time() < 0.5: pass\n    os._exit(0)\nos.wait()"
    )
    assert asleep.cpu_seconds < 0.5 <= busy.cpu_seconds
    assert in_a_child.cpu_seconds >= 0.5


async def test_peak_memory_is_that_of_the_program(bench: Bench) -> None:
    execution = await bench.run("x = bytearray(100 << 20); x[::4096] = b'1' * len(x[::4096])")
    assert execution.peak_memory_bytes >= 100 << 20
    nothing = (await bench.run("pass")).peak_memory_bytes
    assert execution.peak_memory_bytes - nothing >= 90 << 20
    if not missing_limits():  # else what a fork has in common with its parent counts
        assert nothing < 100 << 20


async def test_of_long_output_the_end_is_kept_and_the_rest_counted(bench: Bench) -> None:
    execution = await bench.run(
        "import sys\nsys.stdout.write('A' * 2_999_998 + 'Z\\n')\nprint('last', file=sys.stderr)"
    )
    head, _, tail = execution.stdout_tail.partition("\n")
    kept = len(tail.encode())
    assert head == f"[{2_999_999 + 1 - kept} bytes cut]"
    assert tail == "A" * (kept - 2) + "Z\n"
    assert execution.stderr_tail == "last\n"


async def test_output_that_is_not_text_is_decoded(bench: Bench) -> None:
    execution = await bench.run("import os; os.write(1, b'\\xff\\x00caf\\xc3\\xa9')")
    assert execution.stdout_tail == "\ufffd\x00caf\u00e9"


async def test_output_of_a_killed_program_is_kept(bench: Bench) -> None:
    execution = await bench.run("print('before')\nwhile True: pass", wall_seconds=0.5)
    assert execution.stdout_tail == "before\n"


async def test_nothing_of_a_box_lives_on(bench: Bench) -> None:
    mark = unique("daemon")
    code = f"""
import os, subprocess, sys
for _ in range(3):
    subprocess.Popen(["sh", "-c", "trap '' TERM HUP; sleep 600; : {mark}"], start_new_session=True)
{DONE}
"""
    execution = await bench.run(code, task_id=mark)
    assert execution.failure is None
    assert living(mark) == []


async def test_descriptors_in_flight_do_not_keep_the_streams_open(bench: Bench) -> None:
    code = """
import socket
one, other = socket.socketpair()
socket.send_fds(one, [b"x"], [1, 2, one.fileno(), other.fileno()])
print("sent")
"""
    assert (await bench.run(code)).stdout_tail == "sent\n"


async def test_the_artifact_is_the_bytes_of_the_file(bench: Bench) -> None:
    execution = await bench.run("open('submission.csv', 'wb').write(bytes(range(256)))")
    assert execution.artifact == bytes(range(256))
    empty = await bench.run("open('submission.csv', 'wb')")
    assert (empty.artifact, empty.failure) == (b"", None)
    moved = await bench.run(
        "import os\nos.mkdir('a'); os.chdir('a')\nopen('submission.csv', 'w').write('x')"
    )
    assert moved.failure is not None
    assert moved.failure.kind is ErrorKind.NO_SUBMISSION


async def test_a_closed_file_in_a_closed_folder_is_still_collected(bench: Bench) -> None:
    execution = await bench.run(DONE + "import os\nos.chmod('submission.csv', 0)\nos.chmod('.', 0)")
    assert execution.artifact == b"id\n1\n"


async def test_every_box_starts_with_the_program_alone(bench: Bench) -> None:
    code = (
        "import os\nprint(*[sorted(os.listdir(f)) for f in ('.', '/tmp', '/dev/shm')], os.getcwd())"
        "\nfor f in ('.', '/tmp', '/dev/shm'): open(f + '/left', 'w').write('x')"
    )
    for _ in range(3):
        assert await bench.says(code) == "['solution.py'] [] [] /box\n"


async def test_public_data_is_where_the_prompt_says(bench: Bench) -> None:
    code = "print(open('/workdir/some-task/prepared/public/train.csv').read())"
    execution = await bench.run(code, task_id="some-task")
    assert execution.stdout_tail == "id,label\n1,0\n\n"


async def test_the_program_is_the_main_module(bench: Bench) -> None:
    code = """
import json, sys
print(json.dumps([__name__, __file__, sys.argv, sys.path[0], sys.stdin.read(), __doc__,
                  sys.modules["__main__"].__dict__ is globals(), sorted(globals())]))
"""
    seen = json.loads(await bench.says(code))
    names = ["__builtins__", "__doc__", "__file__", "__loader__", "__name__", "__package__",
             "__spec__", "json", "sys"]  # fmt: skip
    file = "/box/solution.py"
    assert seen == ["__main__", file, [file], "/box", "", None, True, names]


SOURCES = {
    "unicode": "text = 'žluťoučký 🐎 \u2028'\nж = 1\n",
    "crlf": "x = 1\r\ny = '''a\r\nb'''\r\n",
    "tabs and form feeds": "if 1:\n\tx = 1\n\x0c\ny = 2\n",
    "a coding cookie": "# -*- coding: latin-1 -*-\nx = 'é'\n",
    "no last newline": "x = 1",
    "a hash bang": "#!/usr/bin/env python\nx = 1\n",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
async def test_the_file_holds_the_program_byte_for_byte(bench: Bench, source: str) -> None:
    code = source + "\nimport sys; sys.stdout.buffer.write(open(__file__, 'rb').read())"
    markers = after(code, "import sys")
    execution = await bench.run(code, markers)
    assert execution.stdout_tail == code, execution.stderr_tail
    assert execution.milestones == (Milestone.IMPORTED_PACKAGES,)


LATE = """
import sys, threading, time
threading.Thread(target=lambda: (time.sleep(0.2), print("late", file=sys.stderr))).start()
"""


@pytest.mark.parametrize(
    ("code", "exit_code", "stderr"),
    [
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit(None)", 0, ""),
        ("import sys; sys.exit(0)", 0, ""),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('text')", 1, "text\n"),
        ("raise SystemExit(4)", 4, ""),
        ("import os; os._exit(5)", 5, ""),
        ("import os; os.kill(os.getpid(), 15)", 128 + 15, ""),
        ("import atexit; atexit.register(print, 'bye', file=__import__('sys').stderr)", 0, "bye\n"),
        (LATE, 0, "late\n"),
    ],
)  # fmt: skip
async def test_exit_codes_are_those_of_the_interpreter(
    bench: Bench, code: str, exit_code: int, stderr: str
) -> None:
    execution = await bench.run(code)
    assert (execution.exit_code, execution.stderr_tail) == (exit_code, stderr)


async def test_an_interrupt_is_a_failure(bench: Bench) -> None:
    execution = await bench.run("raise KeyboardInterrupt")
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.NONZERO_EXIT
    assert "KeyboardInterrupt" in execution.stderr_tail


RAISING = '''\
"""A module that fails."""
import json

def inner(value):
    number = 1
    return json.loads(value)

def outer():
    try:
        inner("{")
    except ValueError as error:
        raise RuntimeError("wrapped") from error

outer()
'''


async def test_a_traceback_shows_the_program_as_it_was_written(bench: Bench) -> None:
    markers = after(RAISING, "import json", "number = 1", "def outer")
    with_markers = await bench.run(RAISING, markers)
    without = await bench.run(RAISING)
    text = with_markers.stderr_tail
    assert text == without.stderr_tail
    assert [int(m) for m in with_markers.milestones] == [1, 2, 3]
    assert text.startswith("Traceback (most recent call last):\n"), text
    assert 'File "/box/solution.py", line 6, in inner\n    return json.loads(value)\n' in text
    assert 'File "/box/solution.py", line 14, in <module>\n    outer()\n' in text
    assert "The above exception was the direct cause" in text
    assert text.endswith("RuntimeError: wrapped\n")
    assert "launcher" not in text


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 1\nexec('y = (')", "SyntaxError: '(' was never closed"),
        ("x = 1\ncompile('a b', '<generated>', 'exec')", "SyntaxError: invalid syntax"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError: maximum recursion depth exceeded"),
        ("x = 1\nraise ExceptionGroup('several', [ValueError(1), TypeError(2)])", "TypeError: 2"),
        ("import sys\nsys.excepthook = lambda *a: sys.stderr.write('own hook')\n1/0", "own hook"),
    ],
)  # fmt: skip
async def test_odd_exceptions_are_shown_without_the_launcher(
    bench: Bench, code: str, expected: str
) -> None:
    execution = await bench.run(code, after(code, code[:4]))
    assert execution.exit_code == 1
    assert expected in execution.stderr_tail
    assert "launcher" not in execution.stderr_tail


MULTIPROCESSING = """
import multiprocessing, sys

def square(x):
    return x * x

if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(pool.map(square, range(4)))
"""
JOBLIB = """
from joblib import Parallel, delayed

def square(x):
    return x * x

print(Parallel(n_jobs=2)(delayed(square)(x) for x in range(4)))
"""
PICKLE = """
import pickle
class Point:
    def __init__(self, x): self.x = x
print(pickle.loads(pickle.dumps(Point(7))).x, Point.__module__)
"""
HELPER = """
import os
open("helper.py", "w").write("value = 41\\n")
os.makedirs("package"); open("package/__init__.py", "w").write("value = 1\\n")
import helper, package
print(helper.value + package.value)
"""
DATACLASS = """
from __future__ import annotations
import dataclasses, inspect, typing
@dataclasses.dataclass
class Point:
    x: int = 1
def f(): return 1
print(typing.get_type_hints(Point), inspect.getsource(f), end="")
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (MULTIPROCESSING.format(method="fork"), "[0, 1, 4, 9]\n"),
        (MULTIPROCESSING.format(method="spawn"), "[0, 1, 4, 9]\n"),
        (MULTIPROCESSING.format(method="forkserver"), "[0, 1, 4, 9]\n"),
        (JOBLIB, "[0, 1, 4, 9]\n"),
        (PICKLE, "7 __main__\n"),
        (HELPER, "42\n"),
        (DATACLASS, "{'x': <class 'int'>} def f(): return 1\n"),
    ],
    ids=["fork", "spawn", "forkserver", "joblib", "pickle", "own module", "annotations"],
)
async def test_what_python_programs_do_works(bench: Bench, code: str, expected: str) -> None:
    assert await bench.says(code) == expected
