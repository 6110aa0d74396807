"""From a sample of veRL's to a submission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_client.client.answers import Answer
    from trainer_client.client.asynchronous import AsyncRewardClient
    from trainer_client.settings import RunSettings


@dataclass(frozen=True, slots=True)
class VerlSample:
    """What the policy wrote, and where in the run it did.

    `uid` is veRL's name for a prompt that was handed out, `session` counts the answers to it.
    """

    task_id: str
    completion: str
    uid: str
    session: int
    step: int
    is_validation: bool
    parent_id: str | None

    @property
    def name(self) -> str:
        """The sample's name within its step."""
        return f"{self.uid}/{self.session}"


async def score(client: AsyncRewardClient, settings: RunSettings, sample: VerlSample) -> Answer:
    """Have a sample scored.

    However often it is asked for, its program runs once: the key is made of run, step, prompt and
    rollout. Samples that nothing is trained on belong to a run of their own, whose programs are
    nobody's parents, and go first, because the trainer waits for all of them.

    Raises:
        RewardServerError: there is no reward; veRL drops the sample.
    """
    run_id = settings.validation_run_id if sample.is_validation else settings.run_id
    return await client.score(
        sample.task_id,
        completion=sample.completion,
        run_id=run_id,
        step=sample.step,
        sample_id=sample.name,
        idempotency_key=f"{run_id}/{sample.step}/{sample.name}",
        parent_id=sample.parent_id,
        prompt_kind="scratch" if sample.parent_id is None else "improve",
        priority="evaluation" if sample.is_validation else "training",
        wall_seconds=settings.wall_seconds,
    )
