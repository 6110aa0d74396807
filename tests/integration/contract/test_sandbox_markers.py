"""Every sandbox: milestones are reported when reached, and in no other way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reward_server.model import Milestone
from tests.integration.contract.boxes import after

if TYPE_CHECKING:
    from tests.integration.contract.boxes import Bench

ASYNC = """
import asyncio
async def f():
    x = 1
def g():
    y = 1
    yield
asyncio.run(f())
next(g())
"""
# Each case: a program, the statements after which milestones 1, 2, 3 … stand, those that count.
PLACES = {
    "in a function that is called": (
        "def f():\n    x = 1\n    return x\nf()\nf()\n",
        ("x = 1",),
        [1],
    ),
    "in a function that is not called": ("def f():\n    x = 1\n    return x\n", ("x = 1",), []),
    "in a loop": ("for n in range(5):\n    x = n\n", ("x = n", "for n"), [1, 2]),
    "in a branch not taken": ("if False:\n    x = 1\nelse:\n    y = 1\n", ("x = 1", "y = 1"), [2]),
    "in an elif": ("if False:\n    x = 1\nelif True:\n    y = 1\n", ("y = 1",), [1]),
    "after a statement that raises": (
        "try:\n    x = 1 / 0\nexcept ZeroDivisionError:\n    y = 1\nfinally:\n    z = 1\n",
        ("x = 1", "y = 1", "z = 1"),
        [2, 3],
    ),
    "after a loop whose body raises StopIteration": (
        "try:\n    for n in [1]:\n        next(iter(()))\nexcept StopIteration:\n    y = 1\n",
        ("for n", "y = 1"),
        [2],
    ),
    "after a loop that breaks": (
        "while True:\n    x = 1\n    break\ny = 1\n",
        ("x = 1", "while"),
        [1, 2],
    ),
    "in a with that swallows": (
        "import contextlib\nwith contextlib.suppress(ValueError):\n    int('x')\ny = 1\n",
        ("import contextlib", "with", "int("),
        [1, 2],
    ),
    "in a match": (
        "match 1:\n    case 1:\n        x = 1\n    case _:\n        y = 1\n",
        ("x = 1",),
        [1],
    ),
    "in a coroutine and a generator": (
        ASYNC,
        ("import asyncio", "x = 1", "y = 1"),
        [1, 2, 3],
    ),
    "in a thread": (
        "import threading\ndef f():\n    x = 1\nthreading.Thread(target=f).start()\n",
        ("import threading", "x = 1"),
        [1, 2],
    ),
    "in a child process": (
        "import os\nif os.fork() == 0:\n    x = 1\n    os._exit(0)\nos.wait()\n",
        ("import os", "x = 1"),
        [1, 2],
    ),
    "after non-ascii text on the line": ("if 1: é = 'žluť'; x = 1\n", ("if 1",), [1]),
    "after a future import": (
        "'''Doc.'''\nfrom __future__ import annotations\nx: int = 1\n",
        ("from __future__", "x: int"),
        [1, 2],
    ),
    "after the last statement before a failure": (
        "import os\nx = 1\nraise ValueError\n",
        ("import os", "x = 1"),
        [1, 2],
    ),
    "before an exit that skips everything": (
        "import os\nx = 1\nos._exit(1)\n",
        ("import os", "x = 1"),
        [1, 2],
    ),
}


@pytest.mark.parametrize(("code", "places", "expected"), PLACES.values(), ids=PLACES)
async def test_a_marker_counts_where_the_program_came_by(
    bench: Bench, code: str, places: tuple[str, ...], expected: list[int]
) -> None:
    # the milestones 1, 2, 3 build on one another only through those a program has markers for
    execution = await bench.run(code, after(code, *places))
    reached = [int(milestone) for milestone in execution.milestones]
    if 1 not in expected and len(places) > 1:
        assert reached == [], "what builds on a missed step does not count"
        alone = [marker for marker in after(code, *places) if marker.milestone > 1]
        execution = await bench.run(code, alone)
        reached = [int(milestone) for milestone in execution.milestones]
    assert reached == expected, execution
    assert "\x1e" not in execution.stderr_tail


SHUTS = {
    "shuts the error stream": "os.close(2)",
    "shuts everything": "os.closerange(1, 1024)",
    "shuts everything but the streams": "os.closerange(3, 1024)",
    "puts a file in its place": "os.dup2(os.open('log', os.O_CREAT | os.O_RDWR), 2)",
    "replaces sys.stderr": "sys.stderr = sys.stdout = open('log', 'w')",
    "deletes sys.stderr": "del sys.stderr",
    "makes it non-blocking": "os.set_blocking(2, False)",
    "patches os.write": "os.write = os.dup = os.fstat = sys._getframe = None",
    "hides builtins": "import builtins; builtins.print = None",
    "lowers its own limit": "__import__('resource').setrlimit(7, (10, 10))",
}
KEEPS_MARKERS = set(SHUTS) - {"shuts everything"}


@pytest.mark.parametrize("name", SHUTS)
async def test_a_marker_survives_and_never_harms(bench: Bench, name: str) -> None:
    code = f"""
import os, sys
{SHUTS[name]}
files = [open(f"file{{n}}", "w+") for n in range(4)]
x = 1
sizes = [os.stat(f"file{{n}}").st_size for n in range(4)]
open("submission.csv", "w").write(str(sizes))
"""
    execution = await bench.run(code, after(code, "import os", "x = 1"))
    assert execution.artifact == b"[0, 0, 0, 0]", execution
    expected = [1, 2] if name in KEEPS_MARKERS else [1]
    assert [int(milestone) for milestone in execution.milestones] == expected


async def test_threads_that_pass_a_marker_at_once_are_not_disturbed(bench: Bench) -> None:
    code = """
import sys, threading
sys.setswitchinterval(1e-6)
def step():
    x = 1
for _ in range(50):
    threads = [threading.Thread(target=step) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
    execution = await bench.run(code, after(code, "import sys", "x = 1"))
    assert execution.stderr_tail == ""
    assert [int(milestone) for milestone in execution.milestones] == [1, 2]


async def test_a_pool_of_forked_children_does_not_double_a_marker(bench: Bench) -> None:
    code = """
import os
for _ in range(5):
    if os.fork() == 0:
        x = 1
        os._exit(0)
for _ in range(5): os.wait()
x = 1
"""
    execution = await bench.run(code, after(code, "import os", "x = 1"))
    assert [int(milestone) for milestone in execution.milestones] == [1, 2]
    assert execution.stderr_tail == ""


async def test_order_and_dependence_decide_what_counts(bench: Bench) -> None:
    code = "a = 1\nb = 1\nc = 1\n"
    first, second, third = after(code, "c = 1", "b = 1", "a = 1")
    # reached as 3, 2, 1: only the first step builds on nothing
    assert (await bench.run(code, [first, second, third])).milestones == (Milestone(1),)
    # without a marker for the first step, nothing asks for it
    assert (await bench.run(code, [second, third])).milestones == (Milestone(2), Milestone(3))


SEARCH = """
import glob, os, re, sys
x = 1
texts = []
def read(path):
    try:
        with open(path, "rb", buffering=0) as file:
            os.set_blocking(file.fileno(), False)
            texts.append(file.read(1 << 20) or b"")
    except (OSError, ValueError):
        pass
for path in glob.glob("/proc/self/fd/*") + glob.glob("/proc/1/fd/*") + glob.glob("/proc/*/environ"):
    read(path)
for path in glob.glob("/proc/*/cmdline") + glob.glob("/box/*") + glob.glob("/inside/*"):
    read(path)
frame = sys._getframe()
while frame:
    texts += [repr(value).encode() for value in {**frame.f_locals, **frame.f_globals}.values()
              if value is not texts]
    frame = frame.f_back
for token in set(re.findall(rb"(?:\\x1e|\\\\x1e)([0-9a-f]{64})", b" ".join(texts))):
    os.write(2, b"\\x1e" + token + b"\\n")
print(len(texts) > 10)
raise SystemExit
y = 1
"""


async def test_a_later_token_cannot_be_found_outside_the_markers_own_function(bench: Bench) -> None:
    execution = await bench.run(SEARCH, after(SEARCH, "import glob", "y = 1"))
    assert execution.stdout_tail == "True\n", execution.stderr_tail
    assert execution.milestones == (Milestone.IMPORTED_PACKAGES,)
