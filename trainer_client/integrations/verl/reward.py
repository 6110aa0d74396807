"""veRL's reward function, for trainers of veRL's that take no reward manager.

    reward.custom_reward_function.path=pkg://trainer_client.integrations.verl.reward
    +reward.custom_reward_function.reward_kwargs.reward_server='${reward_server}'

A function is not told the prompt's uid, the rollout or the step (`manager.py` is), so its samples
have no step, and a call that is repeated is another job. All else is the same: one client for
each process, one deadline, the same keys for every sample, and no number without a reward.
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
    """Have what the policy wrote for the task `data_source` scored.

    Raises:
        RewardServerError: there is no reward; veRL drops the sample.
        ValueError: `reward_server` does not say where the server is.
    """
    row = {"task_id": data_source, "parent_id": (extra_info or {}).get("parent_id")}
    scored = await RunSettings.read(reward_server).run().score(row, solution_str)
    return scored.measures()
