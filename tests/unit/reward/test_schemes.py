"""What every reward scheme promises, whatever a task's scale looks like."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from reward_server.bootstrap.implementations import make_scheme
from reward_server.cli.rescore import SchemeName
from reward_server.model import Blame, Box, ErrorKind, Execution, Failure, Grade, Milestone
from reward_server.reward.base import Ranking, Scale, Scheme
from reward_server.settings import RewardSettings
from reward_server.tasks.leaderboards import Leaderboard, PartialLeaderboard

KINDS = [kind for kind in ErrorKind if kind.blame is Blame.PROGRAM]
FLAT = [ErrorKind.NO_CODE, ErrorKind.SYNTAX_ERROR]

scores = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 0.5, 1.0])
plain = st.floats(-1e300, 1e300) | st.sampled_from([0.0, 0.5, 1.0])
milestones = st.sets(st.sampled_from(Milestone)).map(lambda found: tuple(sorted(found)))


@pytest.fixture(scope="session", params=list(SchemeName))
def scheme(request: pytest.FixtureRequest) -> Scheme:
    settings = TypeAdapter[RewardSettings](RewardSettings)
    return make_scheme(settings.validate_python({"kind": request.param.value}))


@st.composite
def scales(draw: st.DrawFn) -> Scale:
    higher = draw(st.booleans())
    teams = draw(st.lists(plain, max_size=12))
    ranking: Ranking | None = None
    if teams:
        ranking = board = Leaderboard.of(teams, higher_is_better=higher)
        if draw(st.booleans()):
            number = draw(st.sampled_from([len(teams), 100, 300, 3000]))
            ranking = PartialLeaderboard(replace(board.thresholds, teams=number), higher)
    baseline, gold = draw(st.none() | scores), draw(st.none() | scores)
    return Scale(higher, baseline, gold, ranking)


def earn(
    scheme: Scheme,
    scale: Scale,
    score: float | None,
    kind: ErrorKind | None = None,
    reached: tuple[Milestone, ...] = (),
) -> float:
    failure = None if kind is None else Failure(kind, "")
    execution = Execution(Box("test", "test"), failure, reached)
    reward = scheme.reward(execution, Grade(score, failure), scale)
    assert (reward.scheme, reward.version) == (scheme.name, scheme.version)
    return reward.value


def test_every_configurable_scheme_is_tested() -> None:
    union = get_args(RewardSettings)[0]
    kinds = {get_args(part)[0]().kind for part in get_args(union)}
    assert kinds == {name.value for name in SchemeName}


def test_the_name_of_a_scheme_is_its_kind_in_the_settings(
    scheme: Scheme, request: pytest.FixtureRequest
) -> None:
    assert scheme.name in request.node.name
    assert scheme.version >= 1


@given(scale=scales(), score=scores, reached=milestones)
def test_a_score_earns_a_finite_and_reproducible_number(
    scheme: Scheme, scale: Scale, score: float, reached: tuple[Milestone, ...]
) -> None:
    value = earn(scheme, scale, score, reached=reached)
    assert math.isfinite(value)
    assert earn(scheme, scale, score) == value


@given(scale=scales(), one=scores, other=scores)
def test_a_better_score_never_earns_less(
    scheme: Scheme, scale: Scale, one: float, other: float
) -> None:
    worse, better = sorted((one, other), reverse=not scale.higher_is_better)
    assert earn(scheme, scale, worse) <= earn(scheme, scale, better)


@given(scale=scales(), score=scores, step=st.sampled_from([-1, 1]), mark=st.integers(0, 20))
def test_next_to_a_threshold_a_better_score_never_earns_less(
    scheme: Scheme, scale: Scale, score: float, step: int, mark: int
) -> None:
    known = [score, scale.baseline, scale.gold]
    if isinstance(scale.ranking, Leaderboard | PartialLeaderboard):
        marks = scale.ranking.thresholds
        known += [marks.best, marks.gold, marks.silver, marks.bronze, marks.median, marks.worst]
    near = known[mark % len(known)]
    if near is None:
        near = score
    beside = math.nextafter(near, step * math.inf)
    if math.isfinite(beside):
        worse, better = sorted((near, beside), reverse=not scale.higher_is_better)
        assert earn(scheme, scale, worse) <= earn(scheme, scale, better)


@given(scale=scales(), kind=st.sampled_from(KINDS), reached=milestones, score=scores)
def test_any_valid_submission_beats_any_failure(
    scheme: Scheme,
    scale: Scale,
    kind: ErrorKind,
    reached: tuple[Milestone, ...],
    score: float,
) -> None:
    failed = earn(scheme, scale, None, kind, reached)
    assert math.isfinite(failed)
    assert failed < earn(scheme, scale, score)


@given(scale=scales(), kind=st.sampled_from(KINDS), reached=milestones)
def test_a_failed_program_earns_more_with_each_milestone(
    scheme: Scheme, scale: Scale, kind: ErrorKind, reached: tuple[Milestone, ...]
) -> None:
    without, values = earn(scheme, scale, None, kind), earn(scheme, scale, None, kind, reached)
    if kind in FLAT or not reached:
        assert values == without
    else:
        assert values > without


@given(scale=scales(), score=scores)
def test_a_scheme_without_a_scale_uses_the_direction_alone(
    scheme: Scheme, scale: Scale, score: float
) -> None:
    if not scheme.needs_scale:
        assert earn(scheme, scale, score) == earn(scheme, Scale(scale.higher_is_better), score)
