"""A reward function for trainers of veRL without a reward manager.

    reward.custom_reward_function.path=pkg://trainer_client.integrations.verl.reward
    +reward.custom_reward_function.reward_kwargs.reward_server='${reward_server}'

veRL does not pass the prompt's uid, the rollout or the step to a function, unlike to a manager. So
samples have no step, and a repeated call is a new job. Everything else is as in `manager.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer_client.settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Mapping


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object = None,  # noqa: ARG001  # veRL passes it by name
    extra_info: Mapping[str, object] | None = None,
    *,
    reward_server: Mapping[str, object],
    **_rest: object,
) -> dict[str, float | str]:
    """Score a completion for the task `data_source`.

    Raises:
        RewardServerError: there is no reward; veRL drops the sample.
        ValueError: `reward_server` is not valid.
    """
    row = {"task_id": data_source, "parent_id": (extra_info or {}).get("parent_id")}
    scored = await RunSettings.read(reward_server).run().score(row, solution_str)
    return scored.measures()
