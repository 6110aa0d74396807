"""veRL's reward function, for trainers of veRL's that take no reward manager.

    reward.custom_reward_function.path=pkg://trainer_client.verl.reward
    +reward.custom_reward_function.reward_kwargs.reward_server='${reward_server}'

A function is not told the prompt's uid, the rollout or the step (`manager.py` is), so its samples
have no step, and a call that is repeated is another job. All else is the same: one client for
each process, one deadline, the same keys for every sample, and no number without a reward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer_client.measures import measure, parent_of
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
    settings = RunSettings.read(reward_server)
    parent_id = parent_of(extra_info or {})
    answer = (
        await settings.run()
        .shared_async_client()
        .score(
            data_source,
            completion=solution_str,
            run_id=settings.run_id,
            parent_id=parent_id,
            prompt_kind="scratch" if parent_id is None else "improve",
            wall_seconds=settings.wall_seconds,
        )
    )
    return measure(answer, is_improvement=parent_id is not None)
