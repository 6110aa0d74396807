"""The figures, against numpy and by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_client.evaluate.paper import Published, published
from trainer_client.evaluate.statistics import better, estimate, estimates, numbers, rank

finite = st.floats(-1e6, 1e6)


@dataclass(frozen=True)
class One:
    """A sample, as far as figures need it."""

    reward: float
    score: float | None = None
    valid: bool = False
    medal: str | None = None


def valid(score: float, *, higher: bool = True, medal: str | None = None) -> One:
    return One(score if higher else -score, score, valid=True, medal=medal)


samples = st.lists(
    st.one_of(
        st.builds(valid, finite, medal=st.sampled_from([None, "gold"])),
        st.builds(One, finite, score=st.one_of(st.none(), finite)),
    ),
    min_size=1,
    max_size=40,
)


@given(samples, st.booleans())
def test_the_figures_of_a_seed_are_numpys(content: list[One], higher: bool) -> None:  # noqa: FBT001
    found = numbers(content, higher_is_better=higher)
    scores = [one.score for one in content if one.valid and one.score is not None]
    assert found.scored == len(content)
    assert found.mean_reward == pytest.approx(np.mean([one.reward for one in content]))
    assert found.share_valid == pytest.approx(len(scores) / len(content))
    assert found.share_medal == pytest.approx(np.mean([bool(one.medal) for one in content]))
    if not scores:
        assert (found.mean_score, found.best_score) == (None, None)
        return
    assert found.mean_score == pytest.approx(np.mean(scores), abs=1e-6)
    assert found.best_score == (max(scores) if higher else min(scores))


def test_a_seed_without_samples_has_no_figures() -> None:
    found = numbers([], higher_is_better=True)
    assert (found.scored, found.share_valid, found.mean_reward) == (0, None, None)
    assert set(estimates([found, found]).values()) == {None}


@given(st.lists(st.one_of(st.none(), finite), max_size=12))
def test_the_standard_error_over_seeds_is_numpys(values: list[float | None]) -> None:
    found = estimate(values)
    known = [value for value in values if value is not None]
    if not known:
        assert found is None
        return
    assert found is not None
    assert found.mean == pytest.approx(np.mean(known), abs=1e-6)
    assert found.seeds == len(known)
    if len(known) == 1:
        assert found.standard_error is None
    else:
        expected = np.std(known, ddof=1) / np.sqrt(len(known))
        assert found.standard_error == pytest.approx(expected, abs=1e-6)


@given(finite, finite, st.booleans())
def test_the_better_of_two_is_by_score(first: float, second: float, higher: bool) -> None:  # noqa: FBT001
    one, two = valid(first, higher=higher), valid(second, higher=higher)
    found = better(one, two, higher_is_better=higher)
    assert found.reward == max(one.reward, two.reward)
    failed = One(1e9, score=1e9)
    assert better(one, failed, higher_is_better=higher) is one
    assert better(failed, two, higher_is_better=higher) is two
    assert better(one, None, higher_is_better=higher) is one
    assert better(failed, failed, higher_is_better=higher) is failed


def test_ranks_leave_out_who_has_no_figure() -> None:
    others = [Published("a", (1,), 0.9, 0.0), Published("b", (1,), 0.5, 0.0)]
    others += [Published("c", (2,), None, None)]
    found = [rank(ours, others, higher_is_better=True) for ours in (1.0, 0.9, 0.7, 0.1)]
    assert [(one.rank, one.of) for one in found] == [(1, 3), (1, 3), (2, 3), (3, 3)]
    lower = [rank(ours, others, higher_is_better=False).rank for ours in (0.1, 0.7, 1.0)]
    assert lower == [1, 2, 3]


def test_the_paper_wins_as_often_as_its_figures_say() -> None:
    """The paper's text says 8, 9 and 10 tasks; the figures that it prints give 7, 9 and 11."""
    lower = {"leaf-classification", "nomad2018-predict-transparent-conductors"}
    lower |= {"spooky-author-identification", "lmsys-chatbot-arena"}
    won = {1: 0, 2: 0, 4: 0}
    for task_id in TASKS:
        figures = published(task_id)
        assert len(figures) == 9
        ours = next(one.mean for one in figures if one.agent == "Qwen2.5-3B RL")
        assert ours is not None
        for table in won:
            others = [one for one in figures if one.tables == (table,)]
            won[table] += rank(ours, others, higher_is_better=task_id not in lower).rank == 1
    assert won == {1: 7, 2: 9, 4: 11}
    assert published("no-such-task") == ()


TASKS = (
    *("detecting-insults-in-social-commentary", "random-acts-of-pizza", "leaf-classification"),
    *("learning-agency-lab-automated-essay-scoring-2", "tweet-sentiment-extraction"),
    *("tabular-playground-series-may-2022", "tabular-playground-series-dec-2021"),
    *("us-patent-phrase-to-phrase-matching", "plant-pathology-2020-fgvc7"),
    *("nomad2018-predict-transparent-conductors", "spooky-author-identification"),
    "lmsys-chatbot-arena",
)
