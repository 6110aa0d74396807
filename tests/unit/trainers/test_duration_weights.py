"""The weight of a sample is its duration over the mean of those it is trained with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer_client.durations import describe, weigh
from trainer_client.settings import DurationSettings

PLAIN = DurationSettings()
rows = st.lists(
    st.tuples(st.floats(0, 1e5), st.sampled_from(["a", "b", "c"]), st.booleans()),
    min_size=1,
    max_size=64,
)


def arrays(drawn: list[tuple[float, str, bool]]) -> tuple[np.ndarray, list[str], np.ndarray]:
    seconds = np.array([one[0] for one in drawn])
    return seconds, [one[1] for one in drawn], np.array([one[2] for one in drawn])


def weights_of(seconds: list[float], **options: object) -> list[float]:
    settings = DurationSettings.model_validate(options)
    is_real = np.ones(len(seconds), dtype=bool)
    weights = weigh(np.array(seconds), ["a"] * len(seconds), is_real, settings)
    return [float(weight) for weight in weights]


def test_a_weight_is_the_duration_over_the_mean() -> None:
    assert weights_of([10, 30, 100, 60]) == pytest.approx([0.2, 0.6, 2.0, 1.2])


@given(rows)
def test_the_mean_weight_of_real_rows_is_one(
    drawn: list[tuple[float, str, bool]],
) -> None:
    seconds, tasks, is_real = arrays(drawn)
    weights = weigh(seconds, tasks, is_real, PLAIN)
    assert (weights[~is_real] == 1).all()
    if is_real.any():
        assert weights[is_real].mean() == pytest.approx(1)
    seconds[~is_real] = np.nan
    assert (weigh(seconds, tasks, is_real, PLAIN) == weights).all()


@given(rows)
def test_with_a_mean_per_task_each_tasks_mean_weight_is_one(
    drawn: list[tuple[float, str, bool]],
) -> None:
    seconds, tasks, is_real = arrays(drawn)
    weights = weigh(seconds, tasks, is_real, DurationSettings(mean="task"))
    for name in {task for task, real in zip(tasks, is_real, strict=True) if real}:
        chosen = is_real & (np.array(tasks) == name)
        assert weights[chosen].mean() == pytest.approx(1)


def test_a_clip_bounds_what_one_sample_can_weigh() -> None:
    assert weights_of([1, 1, 1, 97], clip=2.0) == pytest.approx([0.04, 0.04, 0.04, 2.0])


def test_an_exponent_keeps_the_mean() -> None:
    assert weights_of([1, 4], exponent=0.5) == pytest.approx([2 / 3, 4 / 3])


def test_programs_that_never_ran_can_be_given_a_minimum() -> None:
    assert weights_of([0, 3]) == [0, 2]
    assert weights_of([0, 3], minimum_seconds=1) == pytest.approx([0.5, 1.5])


def test_zero_durations_leave_weights_at_one() -> None:
    assert weights_of([0, 0]) == [1, 1]


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_a_sample_without_a_duration_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="no duration"):
        weights_of([1.0, seconds])


def test_the_effective_number_of_samples_falls_with_the_spread() -> None:
    is_real = np.array([True, True, False])
    even = describe(np.array([1.0, 1.0, 9.0]), np.array([1.0, 1.0, 1.0]), is_real)
    assert even["duration/effective_samples"] == pytest.approx(2)
    assert (even["duration/mean"], even["duration/std"], even["duration/max"]) == (1, 0, 1)
    uneven = describe(np.array([0.0, 2.0, 9.0]), np.array([0.0, 2.0, 1.0]), is_real)
    assert uneven["duration/effective_samples"] == pytest.approx(1)
    assert uneven["duration/weight_max"] == 2
