"""Duration weights for slime.

    --rm-type remote_rm --rm-url 'http://10.0.0.5:8000/adapters/slime?reward_key=reward'
    --reward-key reward
    --custom-reward-post-process-path trainer_client.integrations.slime.weigh_rewards

With the estimators grpo, gspo and cispo, slime uses the post-processed rewards as the advantages of
all tokens. So this hook normalises each group as slime does, and then applies the weights. It does
not import slime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trainer_client.durations import weigh_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_ESTIMATORS = ("grpo", "gspo", "cispo")
_TINY = 1e-6


class SlimeSample(Protocol):
    """The used part of slime's sample. With `--reward-key` the reward is an object."""

    reward: Mapping[str, float]

    def get_reward_value(self, args: Any, /) -> float:  # noqa: ANN401  # an argparse.Namespace
        """Return the reward itself."""


def weigh_rewards(
    args: Any,  # noqa: ANN401
    samples: Sequence[SlimeSample],
) -> tuple[list[float], list[float]]:
    """Return the raw rewards, and advantages weighted by Δt / mean Δt.

    Raises:
        ValueError: these options would change the weights on the way to the gradient.
        KeyError: a reward has no duration; is `reward_key` in the URL?
    """
    if args.advantage_estimator not in _ESTIMATORS or args.normalize_advantages:
        message = f"durations need one of {_ESTIMATORS}, without --normalize-advantages"
        raise ValueError(message)
    rewards = np.array([sample.get_reward_value(args) for sample in samples])
    seconds = np.array([sample.reward["duration_seconds"] for sample in samples])
    return rewards.tolist(), (_normalise(args, rewards) * weigh_all(seconds)).tolist()


def _normalise(args: Any, rewards: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401
    if not args.rewards_normalization:
        return rewards
    is_full = len(rewards) == args.n_samples_per_prompt * args.rollout_batch_size
    groups = rewards.reshape(-1, args.n_samples_per_prompt if is_full else len(rewards))
    advantages: NDArray[np.float64] = groups - groups.mean(axis=1, keepdims=True)
    if args.grpo_std_normalization:
        advantages /= groups.std(axis=1, ddof=1, keepdims=True) + _TINY
    return advantages.ravel()
