"""Durations in slime's gradient.

    --rm-type remote_rm --rm-url 'http://10.0.0.5:8000/adapters/slime?reward_key=reward'
    --reward-key reward
    --custom-reward-post-process-path trainer_client.integrations.slime.weigh_rewards

What slime's post-processing of rewards returns is the advantage of every token of a sample, with
its estimators grpo, gspo and cispo: there the weights go, after the group has been normalised as
slime does it. Nothing here imports slime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trainer_client.durations import weigh
from trainer_client.settings import DurationSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_ESTIMATORS = ("grpo", "gspo", "cispo")
_TINY = 1e-6


class SlimeSample(Protocol):
    """What is wanted of slime's sample; with `--reward-key` its reward is an object."""

    reward: Mapping[str, float]

    def get_reward_value(self, args: Any, /) -> float:  # noqa: ANN401  # an argparse.Namespace
        """Return the reward itself."""


def weigh_rewards(
    args: Any,  # noqa: ANN401
    samples: Sequence[SlimeSample],
) -> tuple[list[float], list[float]]:
    """Return the rewards as they are, and as advantages weighed by Δt / mean Δt.

    Raises:
        ValueError: the weights would not reach the gradient as they are.
        KeyError: a reward has no duration beside it; is `reward_key` in the address?
    """
    if args.advantage_estimator not in _ESTIMATORS or args.normalize_advantages:
        message = f"durations want one of {_ESTIMATORS}, without --normalize-advantages"
        raise ValueError(message)
    rewards = np.array([sample.get_reward_value(args) for sample in samples])
    seconds = np.array([sample.reward["duration_seconds"] for sample in samples])
    everything = np.ones(len(samples), dtype=bool)
    weights = weigh(seconds, [""] * len(samples), everything, DurationSettings())
    return rewards.tolist(), (_normalise(args, rewards) * weights).tolist()


def _normalise(args: Any, rewards: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401
    if not args.rewards_normalization:
        return rewards
    is_full = len(rewards) == args.n_samples_per_prompt * args.rollout_batch_size
    groups = rewards.reshape(-1, args.n_samples_per_prompt if is_full else len(rewards))
    advantages: NDArray[np.float64] = groups - groups.mean(axis=1, keepdims=True)
    if args.grpo_std_normalization:
        advantages /= groups.std(axis=1, ddof=1, keepdims=True) + _TINY
    return advantages.ravel()
