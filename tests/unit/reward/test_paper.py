from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.model import Blame, Box, ErrorKind, Execution, Failure, Grade, Milestone
from reward_server.reward.base import Scale
from reward_server.reward.paper import PaperScheme

SCHEME = PaperScheme()
BOX = Box("test", "test")
KINDS = [kind for kind in ErrorKind if kind.blame is Blame.PROGRAM]
FLAT = [ErrorKind.NO_CODE, ErrorKind.SYNTAX_ERROR]

scores = st.floats(allow_nan=False, allow_infinity=False)
milestones = st.sets(st.sampled_from(Milestone)).map(lambda found: tuple(sorted(found)))
directions = st.booleans()


def reward(
    score: float | None,
    kind: ErrorKind | None = None,
    reached: tuple[Milestone, ...] = (),
    *,
    higher: bool = True,
    scheme: PaperScheme = SCHEME,
) -> float:
    failure = None if kind is None else Failure(kind, "")
    execution = Execution(BOX, failure, reached)
    return scheme.reward(execution, Grade(score, failure), Scale(higher)).value


@given(scores, milestones, directions)
def test_a_score_earns_a_finite_reward_of_at_least_the_floor(
    score: float,
    reached: tuple[Milestone, ...],
    higher: bool,  # noqa: FBT001
) -> None:
    value = reward(score, reached=reached, higher=higher)
    assert math.isfinite(value)
    assert value >= -9.0
    assert value == max(score if higher else -score, -9.0)


@given(scores, scores, directions)
def test_a_better_score_never_earns_less(one: float, other: float, higher: bool) -> None:  # noqa: FBT001
    worse, better = sorted((one, other), reverse=not higher)
    assert reward(worse, higher=higher) <= reward(better, higher=higher)


@given(scores, directions)
def test_milestones_do_not_change_a_score(score: float, higher: bool) -> None:  # noqa: FBT001
    without = reward(score, higher=higher)
    assert reward(score, reached=tuple(Milestone), higher=higher) == without


@given(st.sampled_from(KINDS), milestones, scores, directions)
def test_any_valid_submission_beats_any_failure(
    kind: ErrorKind,
    reached: tuple[Milestone, ...],
    score: float,
    higher: bool,  # noqa: FBT001
) -> None:
    assert reward(None, kind, reached) < reward(score, higher=higher)


@given(st.sampled_from([kind for kind in KINDS if kind not in FLAT]), milestones, directions)
def test_a_failure_earns_a_tenth_for_each_milestone(
    kind: ErrorKind,
    reached: tuple[Milestone, ...],
    higher: bool,  # noqa: FBT001
) -> None:
    assert reward(None, kind, reached, higher=higher) == round(-10 + 0.1 * len(reached), 10)


@pytest.mark.parametrize("kind", FLAT)
@given(reached=milestones)
def test_without_a_program_milestones_earn_nothing(
    kind: ErrorKind, reached: tuple[Milestone, ...]
) -> None:
    assert reward(None, kind, reached) == -10.0


@given(scores, directions)
def test_without_a_floor_the_score_is_unchanged(score: float, higher: bool) -> None:  # noqa: FBT001
    value = reward(score, higher=higher, scheme=PaperScheme(valid_floor=None))
    assert value == (score if higher else -score)
