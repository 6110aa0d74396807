from __future__ import annotations

import pytest

from reward_server.extract.completion import NO_CODE, NOT_TEXT, extract
from reward_server.model import Program, Submission


def completion(text: str) -> Program:
    return extract(Submission("task", completion=text))


def test_bare_code_is_the_program_whole() -> None:
    code = "x = '''\n```python\ny = 1\n```\n'''\r\n"
    assert extract(Submission("task", code=code)) == Program(code)


def test_the_plan_is_the_prose_before_the_block() -> None:
    text = "I will fit a ridge.\n\n```python\nx = 1\n```\nThat is all."
    assert completion(text) == Program("x = 1", "I will fit a ridge.")


@pytest.mark.parametrize(
    "tag",
    ["python", "Python", "py", "PY3", "python3", "ipython", "python title=x", "{.python}",
     "{python}", "{.python .numberLines}", "python:main.py", " python "],
)  # fmt: skip
def test_python_tags_are_recognised(tag: str) -> None:
    assert completion(f"```\nuntagged and much longer\n```\n```{tag}\nx = 1\n```").code == "x = 1"


@pytest.mark.parametrize("tag", ["bash", "json", "text", "pycon", "r", "{.r}", "c++"])
def test_other_languages_are_never_run(tag: str) -> None:
    assert completion(f"```{tag}\nx = 1\n```").failure == NO_CODE


def test_untagged_blocks_count_only_without_a_tagged_one() -> None:
    assert completion("```\nx = 1\n```").code == "x = 1"
    assert completion("```\nx = 1 + 1 + 1\n```\n```py\ny\n```").code == "y"


def test_the_longest_block_is_taken_and_the_last_among_equals() -> None:
    text = "```python\naa\n```\nplan\n```python\nbbb\n```\nmore\n```python\nccc\n```"
    program = completion(text)
    assert program.code == "ccc"
    assert program.plan.endswith("more")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("~~~python\nx\n~~~", "x"),
        ("~~~python\nx\n```\ny\n~~~", "x\n```\ny"),
        ("````python\nx\n```\ny\n`````", "x\n```\ny"),
        ("```python\nx\n```python\ny\n```", "x\n```python\ny"),
        ("```python\nx = 1\ny = 2", "x = 1\ny = 2"),
        ("  ```python\n  if x:\n    y\n z\n  ```", "if x:\n  y\nz"),
        ("1. do\n\t```python\n\tx\n\t```", "x"),
        ("```python\r\nx = 1\r\ny = 2\r\n```\r\n", "x = 1\ny = 2"),
        ("```python\nx = '\x0c\u2028'\n```", "x = '\x0c\u2028'"),
        ("use ```python x``` inline\n```python\ny\n```", "y"),
        ("```python\n\ufeffx = 1\n```", "x = 1"),
    ],
)
def test_fences(text: str, code: str) -> None:
    assert completion(text) == Program(code, completion(text).plan)


@pytest.mark.parametrize("text", ["", "just prose", "```python\n \n\t\n```", "``x``", "```"])
def test_a_text_without_code_has_none(text: str) -> None:
    program = completion(text)
    assert (program.code, program.failure) == ("", NO_CODE)


def test_a_text_without_blocks_is_all_plan() -> None:
    assert completion("I would\nnot know.").plan == "I would\nnot know."


def test_empty_bare_code_is_no_code() -> None:
    assert extract(Submission("task", code=" \n")).failure == NO_CODE


def test_text_that_is_not_utf8_is_a_syntax_error() -> None:
    for program in (
        extract(Submission("task", code="x = '\ud800'")),
        completion("```python\nx = '\udfff'\n```"),
        completion("plan \ud800\n```python\nx\n```"),
    ):
        assert program.failure == NOT_TEXT
        (program.code + program.plan).encode()


@pytest.mark.parametrize(
    "text",
    [
        "```\n" * 200_000,
        "```python\n" * 200_000,
        "```\n~~~\n" * 100_000,
        "x" * 50_000_000,
        "`" * 10**6,
        ("`" * 10**6 + "\n") * 3,
        "```" + "{" * 10**6,
        " " * 10**6 + "```python\n" + " " * 10**6 + "x",
        "`" * 10**6 + "x" + "`" * 10**6,
        "\r" * 10**6,
    ],
    ids=range(10),
)
def test_hostile_text_gets_an_answer(text: str) -> None:
    program = completion(text)
    assert len(program.code) <= len(text)
