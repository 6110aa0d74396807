"""What a prompt says, and how the completion it asks for is read."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.extract.completion import extract
from reward_server.extract.markdown import python_block
from reward_server.model import ErrorKind, Failure, Milestone, Program, Submission
from reward_server.prompts.program_output import excerpt
from reward_server.prompts.templates import Rules, improve_text, in_fence, scratch_text, system_text
from reward_server.store.solutions.model_families import FAMILIES, family_of
from reward_server.store.solutions.parents import ParentBody

RULES = Rules("spaceship", False, 600, 4 << 30, 2, has_gpu=False)  # noqa: FBT003
PARENT = ParentBody(
    uuid4(), "print(1)\n", "loss 0.5\n", "", 0.25, None, None, (Milestone.LOADED_DATA,), 12.34
)
pieces = ("a", "b = 1", " ", "`", "~", "\t", "<", "|>", "\u2028", "\ufeff", "\x0b", "```", "~~~~")
hostile = st.lists(st.sampled_from([*pieces, "```python", "``` x", "\n"]), max_size=8).map("".join)
lines = st.lists(hostile, max_size=8).map("\n".join)


def test_the_rules_name_place_time_hardware_and_form() -> None:
    text = system_text(RULES)
    for said in (
        *("/workdir/spaceship/prepared/public", "./submission.csv", "600 seconds"),
        *("2 cores", "4.3 GB", "no GPU", "no network"),
    ):
        assert said in text
    assert "one GPU" in system_text(replace(RULES, has_gpu=True))


def test_both_kinds_ask_for_a_plan_and_one_block() -> None:
    for text in (scratch_text("# Task\n"), improve_text("# Task\n", PARENT, "", RULES)):
        assert text.startswith("# Task")
        assert "plan" in text
        assert "one block that opens with ```python" in text


def test_a_valid_parent_comes_with_score_direction_medal_and_time() -> None:
    text = improve_text("# Task\n", replace(PARENT, medal="silver"), "", RULES)
    assert "It scored 0.25 (lower is better), enough for a silver medal." in text
    assert "12.3 of the 600 seconds" in text
    assert "should be lower" in text


def test_a_failed_parent_comes_with_its_error_and_how_far_it_came() -> None:
    failure = Failure(ErrorKind.TIMEOUT, "the program took too long")
    text = improve_text("# Task\n", replace(PARENT, failure=failure, score=None), "", RULES)
    assert "It failed (timeout): the program took too long." in text
    assert "loaded data" in text
    assert "It scored" not in text


def is_prose(text: str) -> bool:
    return not any(line.strip().startswith(("```", "~~~")) for line in text.split("\n"))


@given(
    plan=lines.filter(is_prose).map(str.strip),
    code=lines.filter(lambda text: text.strip() and not text.startswith("\ufeff")),
    is_cut=st.booleans(),
)
def test_a_completion_of_the_requested_form_is_read_unchanged(
    plan: str,
    code: str,
    is_cut: bool,  # noqa: FBT001 - drawn
) -> None:
    answer = f"{plan}\n\n{in_fence(code)}"
    answer = answer.rstrip("`\n") if is_cut and not code.endswith(("`", "\n")) else answer
    read = extract(Submission("task", completion=answer))
    assert read == Program(code.removesuffix("\n"), plan)


@given(code=lines.filter(str.strip), out=lines, err=lines)
def test_nothing_a_program_says_leaves_its_fence(code: str, out: str, err: str) -> None:
    parent = replace(PARENT, code=code)
    output = excerpt(out, err, failed=False, limit=4000)
    text = improve_text("# Task\n```\nid,y\n```\n", parent, output, RULES)
    block = python_block(text.split("\n"))
    assert block is not None
    assert block.code == code.removesuffix("\n")
    after = text.split(in_fence(code))[-1]
    assert after.endswith("Repeat what you keep.")
    if output:
        fence = output.split("\n")[0]
        assert set(fence) == {"`"}
        assert fence not in output.removeprefix(fence).removesuffix(fence)


def test_losses_come_before_the_rest_and_cuts_are_marked() -> None:
    noise = [f"working on part {at}" for at in range(200)]
    noise[50] = "epoch 3 validation loss: 0.4321"
    output = excerpt("\n".join(noise), "", failed=False, limit=300)
    assert "validation loss: 0.4321" in output
    assert "working on part 199" in output
    assert "working on part 60" not in output
    assert "lines left out]" in output


def test_of_a_failed_program_the_error_is_shown() -> None:
    trace = 'Traceback (most recent call last):\n  File "x.py", line 3\nKeyError: "y"\n'
    output = excerpt("epoch 1 loss 0.5\n" * 100, trace + "bye\n" * 50, failed=True, limit=260)
    assert 'KeyError: "y"' in output


@given(out=lines, err=lines, failed=st.booleans(), limit=st.integers(0, 400))
def test_output_keeps_to_its_limit(out: str, err: str, failed: bool, limit: int) -> None:  # noqa: FBT001
    assert len(excerpt(out, err, failed=failed, limit=limit)) <= max(0, limit)


def test_a_huge_line_is_cut_and_marked() -> None:
    output = excerpt("x" * 1_000_000, "", failed=False, limit=2000)
    assert len(output) < 300
    assert "…" in output


@pytest.mark.parametrize(
    ("code", "family"),
    [
        ("import lightgbm as lgb", "lightgbm"),
        ("from xgboost import XGBClassifier", "xgboost"),
        ("from sklearn.linear_model import LogisticRegression", "linear"),
        ("RandomForestClassifier(10)", "forest"),
        ("import torch.nn as nn", "neural_net"),
        ("VotingClassifier([RandomForestClassifier(), SVC()])", "ensemble"),
        ("MultinomialNB()", "bayes"),
        ("print(1)", "other"),
        ("", "other"),
    ],
)
def test_programs_have_a_family(code: str, family: str) -> None:
    assert family_of(code) == family
    assert family in FAMILIES
