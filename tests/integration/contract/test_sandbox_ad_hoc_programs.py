"""Ad hoc programs in every sandbox: input, files, whole output, and no task's data."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from reward_server.model import MOST_FETCHED, AdHocProgram, ErrorKind
from reward_server.sandbox.bubblewrap.cgroups import missing_limits
from tests.integration.contract.boxes import LIMITS

if TYPE_CHECKING:
    from reward_server.model import Execution, Limits
    from tests.integration.contract.boxes import Bench

QUEUE_TIMEOUT_SECONDS = 60.0


async def run(bench: Bench, program: AdHocProgram, limits: Limits = LIMITS) -> Execution:
    execution: Execution = await bench.sandbox.run(program, limits, QUEUE_TIMEOUT_SECONDS)
    return execution


async def test_an_ad_hoc_program_needs_no_submission(bench: Bench) -> None:
    execution = await run(bench, AdHocProgram("print('done')"))
    assert execution.failure is None
    assert execution.exit_code == 0
    assert execution.artifact is None
    assert execution.stdout_tail == "done\n"


async def test_its_output_is_returned_whole(bench: Bench) -> None:
    code = (
        "import sys\n"
        "for i in range(300_000): print(f'{i:06}')\n"
        "for i in range(300_000): print(f'{i:06}', file=sys.stderr)\n"
    )
    execution = await run(bench, AdHocProgram(code))
    whole = "".join(f"{i:06}\n" for i in range(300_000))
    assert execution.stdout_tail == whole
    assert execution.stderr_tail == whole


async def test_of_too_much_output_the_end_is_returned(bench: Bench) -> None:
    limits = replace(LIMITS, output_bytes=1 << 20)
    execution = await run(bench, AdHocProgram("while True: print('A' * 65535)"), limits)
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.OUTPUT_LIMIT
    note, _, rest = execution.stdout_tail.partition("\n")
    assert note.endswith("bytes cut]")
    assert len(rest) == 1 << 20


@pytest.mark.parametrize("size", [0, 3, 4_000_000])
@pytest.mark.parametrize("packages", ["", "import numpy\n"])
async def test_standard_input_is_complete(bench: Bench, size: int, packages: str) -> None:
    code = f"{packages}import sys\ndata = sys.stdin.buffer.read()\nprint(len(data), data[-3:])"
    content = (b"abc\n" * (size // 4 + 1))[:size]
    execution = await run(bench, AdHocProgram(code, content))
    assert execution.stdout_tail == f"{size} {content[-3:]!r}\n"
    assert execution.stderr_tail == ""


async def test_standard_input_has_no_name_and_counts_as_disk(bench: Bench) -> None:
    code = (
        "import os\nprint(os.listdir('/tmp'), os.read(0, 9))\n"
        "try: os.write(0, b'x')\nexcept OSError as error: print(error.errno)\n"
        "grown = open('/proc/self/fd/0', 'r+b', buffering=0)\n"
        "while True: grown.write(bytes(1 << 20))\n"
    )
    execution = await run(bench, AdHocProgram(code, b"input"), replace(LIMITS, disk_bytes=4 << 20))
    assert execution.stdout_tail == "[] b'input'\n9\n"
    assert execution.failure is not None
    assert execution.failure.kind in {ErrorKind.DISK_LIMIT, ErrorKind.NONZERO_EXIT}
    assert "No space left" in execution.stderr_tail or "denied" in execution.stderr_tail


async def test_files_go_in_and_come_out(bench: Bench) -> None:
    code = (
        "import os, sys\nos.makedirs('x/y')\n"
        "open('x/y/z', 'wb').write(open('a/b', 'rb').read() * 2)\n"
        "open('empty', 'w')\nopen('last', 'w').write('l')\n"
        "print(sorted(os.listdir('.')))\n"
    )
    content = bytes(range(256)) * 300
    wanted = ("absent", "x/y/z", "x", "empty", "x/none", "last/below", "last", "a/b")
    execution = await run(bench, AdHocProgram(code, files={"a/b": content, "c": b""}, fetch=wanted))
    assert execution.stdout_tail == "['a', 'c', 'empty', 'last', 'program.py', 'x']\n"
    assert execution.files == {"x/y/z": content * 2, "empty": b"", "last": b"l", "a/b": content}
    assert execution.refused == ("x", "last/below")


async def test_the_programs_file_never_replaces_a_given_file(bench: Bench) -> None:
    given = {"program.py": b"1", "_program.py/a": b"2"}
    code = "import os\nprint(os.path.basename(__file__), open('program.py').read())"
    execution = await run(bench, AdHocProgram(code, files=given))
    assert execution.stdout_tail == "__program.py 1\n"


async def test_the_largest_number_of_files_comes_out(bench: Bench) -> None:
    names = tuple(f"file-{n}" for n in range(MOST_FETCHED))
    code = f"for n in range({MOST_FETCHED}): open(f'file-{{n}}', 'w').write(str(n))"
    execution = await run(bench, AdHocProgram(code, fetch=names))
    assert execution.files == {name: str(n).encode() for n, name in enumerate(names)}


async def test_only_regular_files_of_an_allowed_size_come_out(bench: Bench) -> None:
    code = (
        "import os, socket\n"
        "os.mkdir('real')\nopen('real/file', 'w').write('x')\n"
        "os.symlink('real', 'linked')\nos.symlink('real/file', 'link')\n"
        "os.symlink('/etc', 'etc')\nos.mkfifo('pipe')\n"
        "open('other', 'w').write('x')\nos.link('other', 'twin')\n"
        "socket.socket(socket.AF_UNIX).bind('socket')\n"
        "open('large', 'wb').truncate(2 << 20)\n"
        "for name in 'ab': open(name, 'wb').truncate(600 << 10)\n"
    )
    odd = ("linked/file", "link", "etc/passwd", "pipe", "twin", "socket", "large")
    execution = await run(bench, AdHocProgram(code, fetch=(*odd, "a", "b")))
    assert execution.files == {"a": bytes(600 << 10)}  # and "b" with it would be too much
    assert execution.refused == (*odd, "b")


async def test_unreadable_folders_and_files_come_out(bench: Bench) -> None:
    code = (
        "import os\nos.mkdir('shut')\nopen('shut/file', 'w').write('x')\n"
        "os.chmod('shut/file', 0)\nos.chmod('shut', 0)\nos.chmod('.', 0)\n"
    )
    execution = await run(bench, AdHocProgram(code, fetch=("shut/file",)))
    assert execution.files == {"shut/file": b"x"}


async def test_files_and_output_of_a_failed_program_are_returned(bench: Bench) -> None:
    code = "print('so far')\nopen('a', 'w').write('b')\nwhile True: pass"
    execution = await run(
        bench, AdHocProgram(code, fetch=("a",)), replace(LIMITS, wall_seconds=2.0)
    )
    assert execution.failure is not None
    assert execution.failure.kind is ErrorKind.TIMEOUT
    assert (execution.stdout_tail, execution.files) == ("so far\n", {"a": b"b"})


async def test_running_out_of_memory_is_named(bench: Bench) -> None:
    code = "x = []\nwhile True: x.append(bytearray(10**7))"
    execution = await run(bench, AdHocProgram(code), replace(LIMITS, memory_bytes=128 << 20))
    assert execution.failure is not None
    expected = ErrorKind.NONZERO_EXIT if missing_limits() else ErrorKind.OOM
    assert execution.failure.kind is expected


async def test_an_ad_hoc_program_sees_no_data_and_a_job_after_it_does(bench: Bench) -> None:
    look = "import os\nprint([names for _, _, names in os.walk('/workdir') if names])"
    assert (await run(bench, AdHocProgram(look))).stdout_tail == "[]\n"
    assert await bench.says(f"{look}\nopen('submission.csv', 'w')") == "[['train.csv']]\n"
    assert (await run(bench, AdHocProgram(look))).stdout_tail == "[]\n"


async def test_a_syntax_error_is_shown_as_python_shows_it(bench: Bench) -> None:
    execution = await run(bench, AdHocProgram("def f(:\n    pass"))
    assert execution.exit_code == 1
    assert execution.stderr_tail.count("File ") == 1
    assert "Traceback" not in execution.stderr_tail
    assert "SyntaxError" in execution.stderr_tail


async def test_the_timeout_counts_in_the_queue_and_not_in_the_box(bench: Bench) -> None:
    everything = replace(LIMITS, memory_bytes=4 << 30)
    first = asyncio.create_task(
        bench.sandbox.run(
            AdHocProgram("import time; time.sleep(3)"), everything, QUEUE_TIMEOUT_SECONDS
        )
    )
    await asyncio.sleep(0.2)
    with pytest.raises(TimeoutError):
        await bench.sandbox.run(AdHocProgram("pass"), LIMITS, 0.1)
    assert (await first).failure is None
    late: Execution = await bench.sandbox.run(
        AdHocProgram("import time; time.sleep(1)"), LIMITS, 0.5
    )
    assert late.failure is None


async def test_a_cancelled_ad_hoc_program_frees_its_slot(bench: Bench) -> None:
    naps = [
        asyncio.create_task(run(bench, AdHocProgram("import time; time.sleep(60)")))
        for _ in range(4)
    ]
    await asyncio.sleep(1.0)
    for one in naps:
        one.cancel()
    await asyncio.wait(naps)
    assert (await run(bench, AdHocProgram("print(1)"))).stdout_tail == "1\n"
