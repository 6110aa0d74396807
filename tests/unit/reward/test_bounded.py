"""The bounded schemes by example; what all schemes promise stands in tests/integration/contract."""

from __future__ import annotations

import pytest

from reward_server.errors import SetupError
from reward_server.model import Box, ErrorKind, Execution, Failure, Grade, Milestone
from reward_server.reward.base import Scale, Scheme
from reward_server.reward.normalised import NormalisedScheme
from reward_server.reward.percentile import PercentileScheme
from reward_server.settings import (
    NormalisedSettings,
    PaperSettings,
    PercentileSettings,
    load_settings,
)
from reward_server.tasks.leaderboards import Leaderboard, PartialLeaderboard

NORMALISED, PERCENTILE = NormalisedScheme(), PercentileScheme()
AUC = Scale(higher_is_better=True, baseline=0.5, gold=0.9)
LOSS = Scale(higher_is_better=False, baseline=1.0, gold=0.25)


def earn(scheme: Scheme, scale: Scale, score: float) -> float:
    return scheme.reward(Execution(Box("", ""), None), Grade(score, None), scale).value


@pytest.mark.parametrize(
    ("scale", "score", "value"),
    [
        (AUC, 0.5, 0.0),
        (AUC, 0.1, 0.0),
        (AUC, 0.7, 0.5),
        (AUC, 0.9, 1.0),
        (AUC, 0.99, 1.0),
        (LOSS, 1.0, 0.0),
        (LOSS, 36.0, 0.0),
        (LOSS, 0.625, 0.5),
        (LOSS, 0.25, 1.0),
        (LOSS, 0.0, 1.0),
    ],
)
def test_normalised_is_the_progress_from_the_sample_to_gold(
    scale: Scale, score: float, value: float
) -> None:
    assert earn(NORMALISED, scale, score) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "scale",
    [
        Scale(higher_is_better=True, baseline=0.5, gold=0.5),
        Scale(higher_is_better=True, baseline=0.5, gold=0.4),
        Scale(higher_is_better=True, baseline=0.5),
    ],
    ids=["sample at gold", "sample beyond gold", "gold unknown"],
)
def test_without_a_gold_threshold_beating_the_sample_earns_all(scale: Scale) -> None:
    values = [earn(NORMALISED, scale, score) for score in (0.4, 0.45, 0.5, 0.50001, 0.9)]
    assert values == [0.0, 0.0, 0.0, 1.0, 1.0]


def test_without_any_threshold_a_score_still_beats_failures() -> None:
    for scheme in (NORMALISED, PERCENTILE):
        assert earn(scheme, Scale(higher_is_better=True), 0.9) == 0.0


def test_the_smallest_and_the_largest_scales_are_exact() -> None:
    tiny = Scale(higher_is_better=True, baseline=0.0, gold=5e-324)
    huge = Scale(higher_is_better=True, baseline=-1.5e308, gold=1.5e308)
    assert [earn(NORMALISED, tiny, score) for score in (0.0, 5e-324)] == [0.0, 1.0]
    assert [earn(NORMALISED, huge, score) for score in (-1.5e308, 0.0, 1.5e308)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("higher", [True, False])
def test_percentile_is_the_share_of_teams_that_are_strictly_worse(higher: bool) -> None:  # noqa: FBT001
    sign = 1 if higher else -1
    board = Leaderboard.of([sign * score for score in (4, 3, 3, 1)], higher_is_better=higher)
    scale = Scale(higher, ranking=board)
    values = [earn(PERCENTILE, scale, sign * score) for score in (0, 1, 2, 3, 3.5, 4, 5)]
    assert values == [0.0, 0.0, 0.25, 0.25, 0.75, 0.75, 1.0]


def test_percentile_falls_back_to_thresholds_then_to_the_sample() -> None:
    board = Leaderboard.of(range(1, 101), higher_is_better=True)
    known = Scale(
        higher_is_better=True, ranking=PartialLeaderboard(board.thresholds, higher_is_better=True)
    )
    assert earn(PERCENTILE, known, 50) == pytest.approx(0.49, abs=0.01)
    assert [earn(PERCENTILE, AUC, score) for score in (0.5, 0.6)] == [0.0, 1.0]


@pytest.mark.parametrize("scheme", [NORMALISED, PERCENTILE])
def test_a_failure_costs_one_minus_a_tenth_per_milestone(scheme: Scheme) -> None:
    failure = Failure(ErrorKind.TIMEOUT, "")
    execution = Execution(Box("", ""), failure, tuple(Milestone))
    assert scheme.reward(execution, Grade(None, failure), AUC).value == -0.3


@pytest.fixture
def set_reward(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("REWARD_SERVER_REWARD__KIND", raising=False)
    return monkeypatch


def test_paper_is_the_default_scheme(set_reward: pytest.MonkeyPatch) -> None:
    assert load_settings().reward == PaperSettings(failure=-10, milestone=0.1, valid_floor=-9)
    set_reward.setenv("REWARD_SERVER_REWARD__FAILURE", "-5")
    set_reward.setenv("REWARD_SERVER_REWARD__VALID_FLOOR", "-4")
    assert load_settings().reward == PaperSettings(failure=-5, milestone=0.1, valid_floor=-4)


@pytest.mark.parametrize("settings", [NormalisedSettings, PercentileSettings])
def test_a_kind_selects_a_scheme_with_its_own_defaults(
    set_reward: pytest.MonkeyPatch, settings: type[NormalisedSettings | PercentileSettings]
) -> None:
    set_reward.setenv("REWARD_SERVER_REWARD__KIND", settings().kind)
    assert load_settings().reward == settings(failure=-1, milestone=0.1)
    set_reward.setenv("REWARD_SERVER_REWARD__MILESTONE", "0.05")
    assert load_settings().reward.milestone == 0.05


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("KIND", "best", "expected tags"),
        ("VALID_FLOOR", "-9", "valid_floor"),
        ("MILESTONE", "0.15", "below 0"),
        ("FAILURE", "-0.7", "below 0"),
        ("FAILURE", "nan", "failure"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(
    set_reward: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    set_reward.setenv("REWARD_SERVER_REWARD__KIND", "normalised")
    set_reward.setenv(f"REWARD_SERVER_REWARD__{name}", value)
    with pytest.raises(SetupError, match=said):
        load_settings()
