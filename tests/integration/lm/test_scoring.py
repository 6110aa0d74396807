"""Programs through `POST /score`, their markers placed by a real model, in both of its modes.

The model is small, so most of its replies are useless; benchmarks measure the quality of markers.
Here the model must cost a program nothing but time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.integration.lm.conftest import (
    BY_LM,
    MODEL,
    counted,
    questions_answered,
    score,
    score_at_once,
    serving,
)

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

SOLUTIONS = ROOT / "tests" / "integration" / "api" / "solutions"
NAMES = (
    "nomad2018-predict-transparent-conductors.functions",
    "random-acts-of-pizza.functions",
    "spooky-author-identification",
)
SOLVED = [(name.partition(".")[0], (SOLUTIONS / f"{name}.py").read_text()) for name in NAMES]
CUT_SHORT = (SOLVED[-1][0], f'{SOLVED[-1][1]}\nraise RuntimeError("cut short")\n')
PROGRAMS = [*SOLVED, CUT_SHORT]
MODES = ("insert", "rewrite")


@dataclass(frozen=True, slots=True)
class ScoringRun:
    """The results of all programs, sent at once and the first of them twice, and their cost."""

    answers: list[dict[str, Any]]
    asked_again: dict[str, Any]
    questions: int
    completion_tokens: int


def run_round(lm: httpx.Client, data_dir: Path, settings: dict[str, str]) -> ScoringRun:
    before = questions_answered(lm), counted(lm, "vllm:generation_tokens_total")
    with serving(data_dir, settings) as client:
        first, *answers = score_at_once(client, [PROGRAMS[0], *PROGRAMS])
        assert first["reward"] == answers[0]["reward"]
        again = score(client, *PROGRAMS[0])
    after = questions_answered(lm), counted(lm, "vllm:generation_tokens_total")
    return ScoringRun(answers, again, after[0] - before[0], after[1] - before[1])


@pytest.fixture(scope="module")
def runs(lm: httpx.Client, data_dir: Path) -> dict[str, ScoringRun]:
    by_mode = {mode: {**BY_LM, "REWARD_SERVER_INSTRUMENT__MODE": mode} for mode in MODES}
    kinds = {"static": {}, **by_mode}
    return {kind: run_round(lm, data_dir, settings) for kind, settings in kinds.items()}


@pytest.mark.parametrize("mode", MODES)
def test_rewards_and_output_are_those_without_a_model(
    runs: dict[str, ScoringRun], mode: str
) -> None:
    for plain, answer in zip(runs["static"].answers, runs[mode].answers, strict=True):
        assert answer["score"] == plain["score"]
        assert answer["stdout_tail"] == plain["stdout_tail"]
        assert answer["stderr_tail"] == plain["stderr_tail"]
    *solved, cut_short = runs[mode].answers
    assert all(answer["valid"] and answer["stdout_tail"] for answer in solved)
    assert cut_short["error"]["kind"] == "nonzero_exit"
    assert cut_short["reward"] == pytest.approx(-10 + 0.1 * len(cut_short["milestones"]))


@pytest.mark.parametrize("mode", MODES)
def test_a_result_names_who_placed_the_markers(runs: dict[str, ScoringRun], mode: str) -> None:
    for answer in runs[mode].answers:
        found = answer["instrumentation"]
        if found["kind"] == "lm":
            assert found["model"] == MODEL
            assert found["verified"] is True
        else:
            assert found["kind"] == "static"
            assert "language model" in found["reason"]
            assert "did not answer in time" not in found["reason"]


@pytest.mark.parametrize("mode", MODES)
def test_the_model_is_asked_once_about_each_program(runs: dict[str, ScoringRun], mode: str) -> None:
    assert runs[mode].questions == len(PROGRAMS)
    again = runs[mode].asked_again["instrumentation"]
    assert again == runs[mode].answers[0]["instrumentation"]


def test_without_a_model_there_are_no_requests(runs: dict[str, ScoringRun]) -> None:
    assert runs["static"].questions == 0


def test_naming_lines_costs_less_than_writing_the_program_again(
    runs: dict[str, ScoringRun],
) -> None:
    insert, rewrite = (runs[mode].completion_tokens for mode in MODES)
    assert 0 < insert <= 0.15 * rewrite, f"tokens: {insert} to name lines, {rewrite} to write again"
