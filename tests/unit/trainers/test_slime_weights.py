"""slime's post-processing of rewards, with samples as its remote reward model leaves them."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from trainer_client.integrations.slime import weigh_rewards

if TYPE_CHECKING:
    from collections.abc import Mapping

ARGS = {
    "advantage_estimator": "grpo",
    "normalize_advantages": False,
    "rewards_normalization": True,
    "grpo_std_normalization": False,
    "n_samples_per_prompt": 2,
    "rollout_batch_size": 2,
    "reward_key": "reward",
}
REWARDS = [1.0, 3.0, -10.0, 0.0]


@dataclass
class WeightedSample:
    reward: Mapping[str, float]

    def get_reward_value(self, args: Any, /) -> float:  # noqa: ANN401 - as slime passes it
        return self.reward[args.reward_key]


def samples(seconds: list[float]) -> list[WeightedSample]:
    return [
        WeightedSample({"reward": reward, "duration_seconds": each, "valid": 1.0})
        for reward, each in zip(REWARDS, seconds, strict=True)
    ]


def weighed(seconds: list[float], **changes: object) -> list[float]:
    raw, advantages = weigh_rewards(SimpleNamespace(**{**ARGS, **changes}), samples(seconds))
    assert raw == REWARDS
    return advantages


def test_programs_of_equal_length_change_nothing() -> None:
    assert weighed([7.0] * 4) == [-1.0, 1.0, -5.0, 5.0]


def test_a_program_that_takes_longer_weighs_more() -> None:
    assert weighed([1.0, 3.0, 4.0, 0.0]) == [-0.5, 1.5, -10.0, 0.0]


def test_the_group_is_normalised_before_it_is_weighed() -> None:
    found = weighed([1.0, 3.0, 4.0, 0.0], grpo_std_normalization=True)
    assert found == pytest.approx([-0.3535, 1.0607, -1.4142, 0.0], abs=1e-3)


def test_without_full_groups_the_batch_is_one_as_in_slime() -> None:
    assert weighed([2.0] * 4, rollout_batch_size=3) == [2.5, 4.5, -8.5, 1.5]


def test_rewards_without_normalisation_are_weighted_directly() -> None:
    assert weighed([1.0, 3.0, 4.0, 0.0], rewards_normalization=False) == [0.5, 4.5, -20.0, 0.0]


@pytest.mark.parametrize("change", [{"advantage_estimator": "ppo"}, {"normalize_advantages": True}])
def test_options_that_would_change_the_weights_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="durations need"):
        weighed([1.0] * 4, **change)


def test_a_reward_without_a_duration_is_refused() -> None:
    with pytest.raises(KeyError, match="duration_seconds"):
        weigh_rewards(SimpleNamespace(**ARGS), [WeightedSample({"reward": 1.0})] * 4)
