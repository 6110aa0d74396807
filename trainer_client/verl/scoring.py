"""From a sample of veRL's to a submission, and from the answer to what veRL keeps of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_client.answers import Answer
    from trainer_client.async_client import AsyncRewardClient
    from trainer_client.verl.settings import RunSettings

DURATIONS = {"wall": "duration_seconds", "cpu": "cpu_seconds"}


@dataclass(frozen=True, slots=True)
class Sample:
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


async def score(client: AsyncRewardClient, settings: RunSettings, sample: Sample) -> Answer:
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


def measure(answer: Answer, *, is_improvement: bool) -> dict[str, float | str]:
    """Return what veRL keeps beside the reward: the same keys for every sample.

    veRL takes means of the numbers in a validation and writes the text to its dumps. The score of
    the task is not among it: a program without a valid submission has none, and a number would
    be made up.
    """
    return {
        "score": answer.reward,
        "valid": float(answer.valid),
        "medal": float(answer.medal is not None),
        "milestones": float(len(answer.milestones)),
        "timed_out": float(answer.error is not None and answer.error.kind == "timeout"),
        "improvement": float(is_improvement),
        "duration_seconds": answer.duration_seconds,
        "cpu_seconds": answer.cpu_seconds,
        "contended": float(answer.sandbox.contended),
        "queue_seconds": answer.timings.queue,
        "solution_id": answer.solution_id,
    }


def parent_of(extra_info: Mapping[str, object]) -> str | None:
    """Return the solution that a prompt asked to improve on."""
    parent_id = extra_info.get("parent_id")
    return str(parent_id) if parent_id else None
