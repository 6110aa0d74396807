"""Processes every sample: generate, record, score, record; then improve on a valid one.

A fixed number of workers take from-scratch samples in order, each with the sample that improves on
it. They process what the journal lacks, so a second run completes an interrupted one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainer_client.client.errors import RequestRefusedError, SampleLostError
from trainer_client.evaluate.endpoint import NotGeneratedError
from trainer_client.evaluate.folder import DataFacts
from trainer_client.evaluate.plan import EvaluationError
from trainer_client.evaluate.samples import SampleRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainer_client.client.answers import Answer
    from trainer_client.client.asynchronous import AsyncRewardClient
    from trainer_client.evaluate.endpoint import ModelEndpoint
    from trainer_client.evaluate.folder import Messages
    from trainer_client.evaluate.plan import EvaluationPlan, SampleSlot
    from trainer_client.evaluate.samples import GeneratedSample, SampleJournal

    Lost = Counter[tuple[str, str]]
    """How many samples of a task were lost, and why."""

_GONE = "the server no longer has the solution"


async def fetch_facts(plan: EvaluationPlan, rewards: AsyncRewardClient) -> dict[str, DataFacts]:
    """Fetch the tasks of a plan and their from-scratch prompts from the server.

    Raises:
        EvaluationError: a task is unknown, or its prompt does not fit.
    """
    return {task_id: await _fetch_facts_of(plan, task_id, rewards) for task_id in plan.tasks}


async def _fetch_facts_of(
    plan: EvaluationPlan, task_id: str, rewards: AsyncRewardClient
) -> DataFacts:
    try:
        task = await rewards.get(f"/v1/tasks/{task_id}")
        prompts = await rewards.prompts(
            task_id, improve_fraction=0.0, budget=plan.budget(), wall_seconds=plan.wall_seconds
        )
    except RequestRefusedError as error:
        message = f"the server refuses {task_id}: {error}"
        raise EvaluationError(message) from error
    messages = prompts["prompts"][0]["messages"]
    names = ("higher_is_better", "metric", "data_digest", "source")
    return DataFacts(**{name: task[name] for name in names}, messages=messages)


def unfinished(plan: EvaluationPlan, journal: SampleJournal) -> Iterator[SampleSlot]:
    """Yield the from-scratch samples that are not finished."""
    for slot in plan.slots():
        sample = journal.samples.get(slot)
        improves = plan.improve and sample is not None and sample.valid
        if sample is None or (improves and not journal.is_finished(slot.improving())):
            yield slot


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Processes the rest of a plan; `lost` counts the samples that need another run."""

    plan: EvaluationPlan
    tasks: Mapping[str, DataFacts]
    journal: SampleJournal
    endpoint: ModelEndpoint
    rewards: AsyncRewardClient
    score_seconds: float
    lost: Lost = field(default_factory=Counter)

    async def run(self, concurrency: int, on_finished: Callable[[], None]) -> None:
        """Process all unfinished samples, and report each finished one.

        Raises:
            EvaluationError: every other sample would fail, too.
        """
        todo = iter(list(unfinished(self.plan, self.journal)))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(self._work(todo, on_finished))
        except ExceptionGroup as several:
            raise _plain(several.exceptions[0]) from several

    async def _work(self, todo: Iterator[SampleSlot], on_finished: Callable[[], None]) -> None:
        for slot in todo:
            try:
                await self._process(slot)
            except (SampleLostError, NotGeneratedError) as error:
                self.lost[slot.task_id, str(error)] += 1
            on_finished()

    async def _process(self, slot: SampleSlot) -> None:
        sample = self.journal.samples.get(slot)
        if sample is None:
            sample = await self._sample(slot, self.tasks[slot.task_id].messages)
        child = slot.improving()
        if self.plan.improve and sample.valid and not self.journal.is_finished(child):
            await self._improve(child, sample.solution_id)

    async def _improve(self, slot: SampleSlot, parent_id: str) -> None:
        try:
            reply = await self.rewards.prompts(
                slot.task_id,
                parent_ids=[parent_id],
                budget=self.plan.budget(),
                wall_seconds=self.plan.wall_seconds,
            )
        except RequestRefusedError as error:
            if error.kind != "not_found":
                raise
            self.journal.add_skipped(slot, _GONE)
            return
        prompt = reply["prompts"][0]
        if prompt["kind"] == "improve":
            await self._sample(slot, prompt["messages"], parent_id)
        else:
            self.journal.add_skipped(slot, prompt["fallback"])

    async def _sample(
        self, slot: SampleSlot, messages: Messages, parent_id: str | None = None
    ) -> SampleRecord:
        generated = self.journal.generated.get(slot)
        if generated is None:
            generated = await self.endpoint.generate(messages, slot.sampling_seed())
            self.journal.add_generated(slot, generated)
        answer = await self._score(slot, generated, parent_id)
        self._check(answer)
        sample = SampleRecord.of(slot, generated, answer, parent_id)
        self.journal.add(slot, sample)
        return sample

    async def _score(
        self, slot: SampleSlot, generated: GeneratedSample, parent_id: str | None
    ) -> Answer:
        return await self.rewards.score(
            slot.task_id,
            deadline_seconds=self.score_seconds,
            completion=generated.completion,
            run_id=self.plan.run_of(slot.seed),
            sample_id=str(slot.index),
            parent_id=parent_id,
            prompt_kind=slot.kind,
            wall_seconds=self.plan.wall_seconds,
            priority="evaluation",
            idempotency_key=self.plan.key_of(slot),
        )

    def _check(self, answer: Answer) -> None:
        """Check that all samples of a task have the same data and reward scheme."""
        expected = self.tasks[answer.task_id].data_digest
        if answer.data_digest != expected:
            message = f"the server's data of {answer.task_id} was changed during the evaluation"
            raise EvaluationError(message)
        other = next(iter(self.journal.samples.values()), None)
        if other is not None and answer.scheme != other.scheme:
            message = f"the server's rewards are by {answer.scheme}, before by {other.scheme}"
            raise EvaluationError(message)


def _plain(error: Exception) -> Exception:
    """Return an error in one line if the server refused the request."""
    if not isinstance(error, RequestRefusedError):
        return error
    hint = "; another evaluation has used this --run-id" if error.status == 409 else ""
    return EvaluationError(f"the reward server refuses: {error}{hint}")
