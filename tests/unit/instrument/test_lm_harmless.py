"""Whatever a language model answers, the program does what it did, and reports besides."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from reward_server.instrument.lm.prompts import Mode
from reward_server.instrument.lm.reply_markers import read_markers
from reward_server.model import Marker, Milestone
from reward_server.sandbox import milestones as sandbox_milestones
from tests.support.lm_endpoints import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator

INSIDE = Path(sandbox_milestones.__file__).parent / "inside"
LABELS = [milestone.label for milestone in Milestone]

# What the launcher does in a box, without the box: compile with markers, run. Each program runs
# in a fork of one interpreter, because starting an interpreter takes far longer than a program.
DRIVER = f"""
import json, os, sys, traceback
sys.path.insert(0, {str(INSIDE)!r})
import markers
sys.path[0] = "."

def run(request):
    os.chdir(request["folder"])
    for stream in (1, 2):
        os.dup2(os.open(request["streams"][stream - 1], os.O_WRONLY | os.O_CREAT), stream)
    positions = {{}}
    for line, column, milestone in request["markers"]:
        positions.setdefault((line, column), []).append(milestone)
    tokens = {{number: b"\\x1e%d\\n" % number for number in range(1, 8)}}
    payload = dict(code=request["code"], positions=positions, name="_report", tokens=tokens)
    try:
        exec(markers.compile_with_markers(payload, "program.py"), {{"__name__": "__main__"}})
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

for line in sys.stdin:
    child = os.fork()
    if not child:
        status = run(json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
PACKAGE = """
class Model:
    def fit(self, *_): print("fitting"); return self
    def predict(self, x): return [x, x]
def read(name): return [1, 2, len(name)]
def score(*_): return 0.5
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """All that can be seen of a run from outside."""

    status: int
    output: bytes
    errors: bytes
    files: tuple[tuple[str, bytes], ...]


@pytest.fixture(scope="module")
def driver() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-I", "-S", "-B", "-c", DRIVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


Driver = subprocess.Popen[str]


def run(driver: Driver, code: str, markers: list[Marker]) -> tuple[Ending, list[int]]:
    """Run a program; return what it did, and the milestones in the order they were reported."""
    assert driver.stdin is not None
    assert driver.stdout is not None
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as outside:
        folder, streams = Path(name), [str(Path(outside, "out")), str(Path(outside, "err"))]
        placed = [[marker.line, marker.column, int(marker.milestone)] for marker in markers]
        (folder / "package.py").write_text(PACKAGE)
        request = {"folder": name, "streams": streams, "code": code, "markers": placed}
        print(json.dumps(request), file=driver.stdin, flush=True)
        status = int(driver.stdout.readline())
        output, errors = (Path(path).read_bytes() for path in streams)
        files = tuple(sorted((path.name, path.read_bytes()) for path in folder.iterdir()))
    reported = []
    while (at := errors.find(b"\x1e")) >= 0:
        reported.append(int(errors[at + 1 : at + 2]))
        errors = errors[:at] + errors[at + 3 :]
    return Ending(status, output, errors, files), reported


SIMPLE = [
    "a = 1",
    "b = a + 2",
    "a, b = b, a",
    "a += 1; b = a * 2",
    "data = package.read(\n    'train.csv',\n)",
    "model = package.Model()",
    "model.fit(data)",
    "labels = model.predict(data)",
    "loss = package.score(labels)",
    "print('loaded data')",
    "print(a, b)",
    "print('training loss', a)",
    "open('submission.csv', 'a').write(str(a) + '\\n')",
    "import json, sys",
    "from math import pi",
    "assert a",
    "b = [c * 2 for c in range(3)]",
    "del a",
    "pass",
    "sys.stderr.write('to the error stream\\n')",
    "raise ValueError(a)",
]
HEADS = [
    "for i in range(3):",
    "for i in []:",
    "if a:",
    "if not a:",
    "while n < 3:\n    n += 1",
    "try:",
    "with open('log.txt', 'a') as f:\n    f.write('x')",
    "def work(a=2, model=package.Model()):",
    "class Thing:",
]


# Every step can have been taken after this, so that what is named later is not left out.
HEAD = "import package, sys\na = 1\nb = n = 2\ndata = package.score(a)\nmodel = package.Model()"


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def compound(head: str, body: list[str], tail: list[str]) -> str:
    first, _, rest = head.partition("\n")
    inner = "\n".join([*([rest.removeprefix("    ")] if rest else []), *body])
    text = f"{first}\n{indented(inner)}"
    if head == "try:":
        return text + f"\nexcept ValueError as error:\n{indented(chr(10).join(tail))}"
    if head.startswith("def"):
        return text + "\n    return a\nwork()\nfor _ in range(3): work(5)"
    return text + (f"\nelse:\n{indented(chr(10).join(tail))}" if head == "if a:" else "")


statements = st.recursive(
    st.sampled_from(SIMPLE),
    lambda inner: st.builds(
        compound,
        st.sampled_from(HEADS),
        st.lists(inner, min_size=1, max_size=4),
        st.lists(inner, min_size=1, max_size=2),
    ),
    max_leaves=10,
)
programs = st.lists(statements, min_size=1, max_size=8).map(
    lambda parts: "\n".join([HEAD, *parts, ""])
)


@st.composite
def lines_named(draw: st.DrawFn, code: str) -> str:
    """Return an answer that names any lines, those of the program and some beside it."""
    lines = st.integers(-1, code.count("\n") + 2)
    pairs = draw(st.lists(st.tuples(lines, st.sampled_from(LABELS)), min_size=4, max_size=24))
    return lines_of(*pairs)


PRINTS = [
    *(f"print({label!r})" for label in LABELS),
    "print('training loss', a)",
    "print('testing loss', data[0])",
]
SPOILS = [
    "print('loaded data', open('submission.csv', 'w'))",
    "print(a)",
    "a = 7",
    "open('submission.csv', 'w').write('better')",
]


def end_of(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


@st.composite
def rewrites(draw: st.DrawFn, code: str) -> str:
    """Return a program that someone who should have added prints might have made of it."""
    lines = code.split("\n")
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    chosen = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=8))
    for node in sorted(chosen, key=lambda node: (-end_of(node), node.col_offset)):
        text = draw(st.sampled_from([*PRINTS * 8, *SPOILS]))
        first = lines[node.lineno - 1]
        lines.insert(end_of(node), first[: len(first) - len(first.lstrip())] + text)
    if draw(st.sampled_from([*[False] * 9, True])):
        del lines[draw(st.integers(0, len(lines) - 1))]
    return "```python\n" + "\n".join(lines) + "\n```"


def compiles(code: str) -> bool:
    try:
        compile(code, "program.py", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def check(driver: Driver, code: str, answer: str, mode: Mode) -> int:
    """Return how many milestones a program reported that did exactly as without markers."""
    markers, _ = read_markers(answer, mode, code, ast.parse(code), ast.parse)
    if not markers:
        return 0
    before, nothing = run(driver, code, [])
    after, reported = run(driver, code, markers)
    assert after == before
    assert nothing == []
    assert len(set(reported)) == len(reported)
    assert set(reported) <= {int(marker.milestone) for marker in markers}
    return len(reported)


EXAMPLES = settings(
    max_examples=60,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)


@EXAMPLES
@given(programs.filter(compiles), st.data())
def test_a_program_does_the_same_whatever_lines_are_named(
    driver: Driver, code: str, data: st.DataObject
) -> None:
    check(driver, code, data.draw(lines_named(code)), Mode.INSERT)


@EXAMPLES
@given(programs.filter(compiles), st.data())
def test_a_program_does_the_same_however_it_is_rewritten(
    driver: Driver, code: str, data: st.DataObject
) -> None:
    check(driver, code, data.draw(rewrites(code)), Mode.REWRITE)


def test_the_property_is_about_programs_that_report(driver: Driver) -> None:
    code = "import package\nmodel = package.Model()\nmodel.fit(1)\nlabels = model.predict(2)\n"
    named = [(1, 0), (2, 2), (3, 4), (4, 6)]
    answer = lines_of(*((line, LABELS[number]) for line, number in named))
    assert check(driver, code, answer, Mode.INSERT) == 4


def test_a_marker_in_a_hot_loop_reports_once(driver: Driver) -> None:
    code = (
        "import package\nmodel = package.Model()\nn = 0\n"
        "for i in range(100_000):\n    n = model.predict(i)[0]\nprint(n)\n"
    )
    answer = lines_of(*((5, label) for label in LABELS))
    markers, _ = read_markers(answer, Mode.INSERT, code, ast.parse(code), ast.parse)
    assert {(marker.line, marker.column) for marker in markers} == {(5, 4)}
    ending, reported = run(driver, code, markers)
    assert ending.output == b"99999\n"
    assert sorted(reported) == sorted({int(marker.milestone) for marker in markers})
