"""A language model's reply becomes markers that can be trusted."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from reward_server.instrument.lm.plausibility import Plausibility
from reward_server.instrument.lm.prompts import Mode, without_comments
from reward_server.instrument.lm.reply_markers import read_markers
from reward_server.instrument.static.analyzer import find_markers
from reward_server.instrument.verification import verify
from reward_server.model import Marker, Milestone
from tests.support.lm_endpoints import lines_of
from tests.unit.instrument.corpus import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

CODE = """\
import pandas as pd
from sklearn.linear_model import Ridge
train = pd.read_csv(
    "train.csv",
)
model = Ridge()
for fold in range(3):
    model.fit(train, train.y)
    if fold:
        continue
    a = 1; loss = abs(model.predict(train) - train.y).mean()
print("loaded data")
def predict(frame):
    return model.predict(frame)
labels = predict(pd.read_csv("test.csv"))
"""
STEPS = {milestone.label: milestone for milestone in Milestone}


def inserted(code: str, *pairs: tuple[object, str]) -> tuple[set[tuple[int, int, str]], str]:
    return read(code, lines_of(*pairs), Mode.INSERT)


def read(code: str, answer: str, mode: Mode) -> tuple[set[tuple[int, int, str]], str]:
    markers, reason = read_markers(answer, mode, code, ast.parse(code), ast.parse)
    assert verify(code, markers)
    return {(m.line, m.column, m.milestone.label) for m in markers}, reason or ""


@pytest.mark.parametrize(
    ("line", "milestone", "at"),
    [
        (2, "imported packages", (2, 0)),
        (3, "loaded data", (3, 0)),
        (4, "loaded data", (3, 0)),
        (5, "loaded data", (3, 0)),
        (7, "trained model", (7, 0)),
        (8, "trained model", (8, 4)),
        (11, "training loss", (11, 11)),
        (15, "predicted test labels", (15, 0)),
    ],
)
def test_a_line_means_the_innermost_statement_it_is_of(
    line: int, milestone: str, at: tuple[int, int]
) -> None:
    assert inserted(CODE, (line, milestone)) == ({(*at, milestone)}, "")


@pytest.mark.parametrize(
    ("line", "milestone", "why"),
    [
        (0, "loaded data", "not after a statement"),
        (-3, "loaded data", "not after a statement"),
        (99, "loaded data", "not after a statement"),
        (10**30, "loaded data", "not after a statement"),
        (10, "trained model", "where no marker may stand"),
        (14, "predicted test labels", "where no marker may stand"),
        (1, "loaded data", "not at such a step"),
        (3, "trained model", "not at such a step"),
        (6, "predicted test labels", "not at such a step"),
    ],
)
def test_one_invalid_line_is_dropped_alone(line: int, milestone: str, why: str) -> None:
    found, reason = inserted(CODE, (2, "imported packages"), (line, milestone))
    assert found == {(2, 0, "imported packages")}
    assert reason == f"left out: 1 {why}"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no",
        "null",
        "[]",
        "3",
        '{"2": 3}',
        '{"2": {"3": 4}}',
        '{"2": [[3]]}',
        '{"2": ["3"]}',
        '{"2": [1.5]}',
        '{"2": [true]}',
        '{"8": [3]}',
        '{"loaded data": [3]}',
        '{"2": [3' + ", 3" * 24 + "]}",
        "[" * 100_000,
        '{"2": [' + "9" * 10_000 + "]}",
    ],
)  # fmt: skip
def test_an_answer_of_another_shape_is_refused(answer: str) -> None:
    found, reason = read(CODE, answer, Mode.INSERT)
    assert found == set()
    assert reason == "its answer is not the JSON that was asked for"


def test_one_milestone_has_at_most_eight_places() -> None:
    code = "import pandas as pd\n" + "x = pd.read_csv('a')\n" * 20
    found, _ = inserted(code, *((line, "loaded data") for line in range(2, 22)))
    assert found == {(line, 0, "loaded data") for line in range(2, 10)}


def rewritten(code: str, *added: tuple[int, str]) -> str:
    """Return the answer of a model that adds statements after lines, in a block."""
    lines = code.split("\n")
    for line, text in sorted(added, reverse=True):
        lines.insert(line, text)
    return "Here it is:\n```python\n" + "\n".join(lines) + "\n```\nDone."


def test_added_prints_become_markers_after_the_statement_before() -> None:
    answer = rewritten(
        CODE,
        (2, 'print("Imported packages.")'),
        (5, "print('loaded data')"),
        (8, '    print("trained model", model)'),
        (11, '    print("training loss:", loss)'),
        (15, 'print("predicted test labels", labels[0])'),
    )
    found, reason = read(CODE, answer, Mode.REWRITE)
    assert reason == ""
    assert found == {
        (2, 0, "imported packages"),
        (3, 0, "loaded data"),
        (8, 4, "trained model"),
        (11, 11, "training loss"),
        (15, 0, "predicted test labels"),
    }


def test_the_originals_own_prints_are_no_markers() -> None:
    assert read(CODE, rewritten(CODE), Mode.REWRITE) == (set(), "")
    again, _ = read(CODE, rewritten(CODE, (12, 'print("loaded data")')), Mode.REWRITE)
    assert again == {(12, 0, "loaded data")}


@pytest.mark.parametrize(
    ("line", "text", "why"),
    [
        (0, 'print("imported packages")', "not after a statement"),
        (13, '    print("trained model")', "not after a statement"),
        (14, '    print("trained model")', "where no marker may stand"),
        (5, 'print("data is here")', "of an unknown step"),
        (5, "print()", "of an unknown step"),
        (5, "print(train)", "of an unknown step"),
        (5, 'print(f"loaded data")', "of an unknown step"),
        (5, 'print("loaded data", train, model)', "of an unknown step"),
        (5, 'print("loaded data", file=open("submission.csv", "w"))', "of an unknown step"),
        (5, 'print(open("submission.csv", "w").write("x"))', "of an unknown step"),
        (5, 'print("loaded data", train.drop(0))', "showing more than a name"),
        (5, 'print("loaded data", __import__("os").remove("x"))', "showing more than a name"),
        (5, 'print("loaded data", train[f()])', "showing more than a name"),
        (5, 'print("loaded data", 3)', "showing more than a name"),
        (5, 'print("loaded data", model)', "showing a name unknown there"),
        (5, 'print("loaded data", train[fold])', "showing a name unknown there"),
        (2, 'print("loaded data")', "not at such a step"),
    ],
)
def test_one_invalid_print_is_dropped_alone(line: int, text: str, why: str) -> None:
    answer = rewritten(CODE, (2, 'print("imported packages")'), (line, text))
    if line == 2:
        answer = rewritten(CODE, (2, f'print("imported packages")\n{text}'))
    found, reason = read(CODE, answer, Mode.REWRITE)
    assert found == {(2, 0, "imported packages")}
    assert reason == f"left out: 1 {why}"


ALTERED = {
    "a statement left out": CODE.replace("model = Ridge()\n", ""),
    "half of it": "\n".join(CODE.split("\n")[:8]),
    "the end left out": CODE.rpartition("labels")[0],
    "a number": CODE.replace("range(3)", "range(4)"),
    "a sign": CODE.replace("train.y).mean", "+train.y).mean"),
    "another string": CODE.replace('"test.csv"', '"train.csv"'),
    "another type of number": CODE.replace("a = 1", "a = 1.0"),
    "two swapped": CODE.replace("import pandas as pd\n", "").replace(
        "train = ", "import pandas as pd\ntrain = ", 1
    ),
    "a submission": CODE + 'open("submission.csv", "w").write("id,label")\n',
    "a file call": "import os\nos.remove('x')\n" + CODE,
    "a network call": CODE + "import urllib.request\nurllib.request.urlopen('http://a')\n",
    "an import": "import sys\n" + CODE,
    "a print that is assigned": CODE + 'x = print("loaded data")\n',
    "a print of another": CODE + 'sys.stdout.print("loaded data")\n',
    "a marker of its own": CODE + "marker_(1)\n",
    "wrapped in a function": "def main():\n" + "".join(f"    {x}\n" for x in CODE.split("\n")),
    "a swallowed error": CODE.replace("labels = ", "try:\n    labels = ") + "except: pass\n",
    "a print for a body": CODE.replace("        continue", '        print("trained model")'),
    "nothing": "",
}


@pytest.mark.parametrize("name", ALTERED)
def test_a_program_that_was_altered_is_refused_whole(name: str) -> None:
    answer = f'```python\n{ALTERED[name]}\nprint("predicted test labels")\n```'
    found, reason = read(CODE, answer, Mode.REWRITE)
    assert found == set()
    assert reason == "its answer is not the program with prints added"


@pytest.mark.parametrize(
    "answer",
    [
        "I am sorry, but as a language model I would rather not.",
        "```python\nfor x in:\n```",
        "```javascript\nconst x = 1;\n```",
        "```\nconst x = 1;\n```",
        "```python\n" + "(" * 5000 + "\n```",
    ],
)
def test_a_reply_that_is_no_python_is_refused(answer: str) -> None:
    found, reason = read(CODE, answer, Mode.REWRITE)
    assert found == set()
    assert reason == "its answer is not a Python program"


def test_of_two_blocks_the_longer_counts_as_for_programs() -> None:
    good = rewritten(CODE, (5, 'print("loaded data")'))
    found, _ = read(CODE, f"```python\nprint(1)\n```\n{good}", Mode.REWRITE)
    assert found == {(3, 0, "loaded data")}


def test_comments_and_layout_are_no_change() -> None:
    spread = CODE.replace("a = 1; loss", "a = 1  # one\n    loss").replace(
        '"train.csv"', "'train.csv'"
    )
    found, _ = read(CODE, rewritten(spread, (5, 'print("loaded data")  # there')), Mode.REWRITE)
    assert found == {(3, 0, "loaded data")}


def test_every_block_of_every_statement_is_visited() -> None:
    code = """\
import pandas as pd
async def f(x):
    async with x as y:
        a = pd.read_csv(y)
try:
    b = pd.read_csv(1)
except ValueError as error:
    b = pd.read_csv(2)
else:
    c = pd.read_csv(3)
finally:
    d = pd.read_csv(4)
while b:
    e = pd.read_csv(5)
else:
    g = pd.read_csv(6)
match b:
    case [h, *i]:
        j = pd.read_csv(7)
"""
    lines = [
        (number, " " * (len(text) - len(text.lstrip())) + f'print("loaded data", {shown})')
        for number, text in enumerate(code.split("\n"), 1)
        for shown in [{8: "error", 19: "i"}.get(number, "pd")]
        if "read_csv" in text
    ]
    found, reason = read(code, rewritten(code, *lines), Mode.REWRITE)
    assert {line for line, _, _ in found} == {4, 6, 8, 10, 12, 14, 16, 19}
    assert reason == ""


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_what_the_static_finder_finds_is_plausible(path: Path) -> None:
    tree = ast.parse(path.read_text())
    plausibility = Plausibility(tree)
    assert [m for m in find_markers(tree) if not plausibility.allows(m)] == []


IMPORTS = "import numpy as np\nimport pandas as pd\nfrom sklearn.linear_model import Ridge\n"
LATER = [label for label in STEPS if label != "imported packages"]


@pytest.mark.parametrize(
    "step",
    [
        "x = 1",
        "print('loaded data')",
        "pass",
        "def load(): return pd.read_csv('a')",
        "f = lambda: Ridge().fit(1, 2)",
        "class Model: pass",
        "if x: Ridge().fit(pd.read_csv('a'))",
        "while 0: Ridge().fit(pd.read_csv('a'))",
        "for x in []: Ridge().fit(pd.read_csv('a'))",
        "0 and Ridge().fit(pd.read_csv('a'))",
        "try: Ridge().fit(pd.read_csv('a'))\nexcept Exception: pass",
        "x = Ridge().fit(pd.read_csv('a')) if y else None",
        "def noop(): return 1\nnoop()",
        "text = 'a'.upper()",
        "import time; time.sleep(1)",
        "df = pd.DataFrame({'a': [1]})",
        "df = pd.DataFrame()\ndf.to_csv('submission.csv')",
        "df = pd.DataFrame()\ndf = df.fillna(0).drop(1).merge(df)",
        "import random\nlabels = [random.random() for _ in range(3)]",
    ],
)
def test_a_statement_that_cannot_be_a_step_is_implausible(step: str) -> None:
    code = IMPORTS + step
    last = ast.parse(code).body[-1]
    plausibility = Plausibility(ast.parse(code))
    believed = [
        label
        for label in LATER
        if plausibility.allows(Marker(last.lineno, last.col_offset, STEPS[label]))
    ]
    assert believed == []


@pytest.mark.parametrize(
    ("step", "milestone"),
    [
        ("import torch", "imported packages"),
        ("x = 1", "imported packages"),
        ("with open('a') as f: rows = f.read()", "loaded data"),
        ("import json\nrows = json.load(open('a'))", "loaded data"),
        ("def load(): return pd.read_csv('a')\nload()", "loaded data"),
        ("w = np.zeros(3)", "defined model"),
        ("class Net:\n    def __init__(self): self.w = np.zeros(3)", "defined model"),
        ("if 1: m = Ridge()\nelse: m = Ridge(2)", "defined model"),
        ("w = np.zeros(3)\nfor _ in range(9):\n    w -= 0.1 * w", "trained model"),
        ("m = Ridge()\nm.fit(1, 2)", "trained model"),
        ("def run(m):\n    m.fit(1)\nrun(Ridge())", "trained model"),
        ("try: Ridge().fit(1)\nexcept ValueError: raise", "trained model"),
        ("m = Ridge()\nprint(((m.predict(1) - 2) ** 2).mean())", "testing loss"),
        ("w = np.zeros(3)\nlabels = w @ w", "predicted test labels"),
    ],
)
def test_a_statement_that_can_be_a_step_is_plausible(step: str, milestone: str) -> None:
    code = IMPORTS + step
    last = ast.parse(code).body[-1]
    marker = Marker(last.lineno, last.col_offset, STEPS[milestone])
    assert Plausibility(ast.parse(code)).allows(marker)


def test_packages_count_once_one_was_imported_on_the_way() -> None:
    code = "import os\nx = 1\ndef f():\n    import numpy\n    y = 2\nimport pandas\nz = 3\n"
    plausibility = Plausibility(ast.parse(code))
    places = {(1, 0), (2, 0), (3, 0), (4, 4), (5, 4), (6, 0), (7, 0)}
    step = Milestone.IMPORTED_PACKAGES
    allowed = {at for at in places if plausibility.allows(Marker(*at, step))}
    assert allowed == {(4, 4), (5, 4), (6, 0), (7, 0)}


def test_comments_are_blanked_and_lines_stay() -> None:
    code = '# top\nx = "# no"  # yes\r\ny = (1,  # inside\n     2)\n\n# end\nz = """\n# text\n"""'
    assert without_comments(code) == ('\nx = "# no"\ny = (1,\n     2)\n\n\nz = """\n# text\n"""')


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_without_comments_is_the_same_program(path: Path) -> None:
    code = path.read_text()
    text = without_comments(code)
    assert text is not None
    assert "#" not in text
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(code))
