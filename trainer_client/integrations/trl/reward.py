"""A reward function for TRL: scores all samples of a batch concurrently.

    GRPOTrainer(model, reward_funcs=make_reward(Run.from_environment(run_id="spooky-1")), ...)

Rows of the data set have the columns that `trainer_client.run` describes.

The reward of a lost sample is None: TRL leaves it out of its group's mean and gives it no
advantage. Errors that would affect every further sample end the run: a refused request, and the
third batch in a row in which no sample has a reward. TRL itself would continue for ever, with
optimizer steps on nothing.

TRL requests each reward once, and retries of the client share a random key. Keys made of steps and
indices would be wrong here: gradient accumulation, evaluation and a resumed checkpoint reuse the
same ones for other texts.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from trainer_client.client.errors import InfrastructureError, RequestRefusedError
from trainer_client.measures import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from trainer_client.client.answers import Answer, Result
    from trainer_client.client.submissions import Submission
    from trainer_client.run import Run

    Completion = str | Sequence[Mapping[str, object]]
    Row = Mapping[str, object]

LOGGED = (
    "valid",
    "medal",
    "milestones",
    "timed_out",
    "improvement",
    "duration_seconds",
    "cpu_seconds",
    "contended",
    "queue_seconds",
)
_MOST_LOST_BATCHES = 3


class TrainerState(Protocol):
    """The used part of TRL's `trainer_state`."""

    global_step: int


@dataclass(frozen=True, slots=True)
class LogFunctions:
    """The logging callbacks that TRL passes. Older versions may lack them."""

    log_metric: Callable[[str, float], None] | None
    log_extra: Callable[[str, list[object]], None] | None

    def write(self, results: Sequence[Result], rows: Sequence[Row], name: str) -> None:
        """Log the measures of a batch.

        Each sample is logged separately, so that TRL averages over all samples of all processes.
        """
        for result, row in zip(results, rows, strict=True):
            self._log(f"{name}/lost/mean", float(result.answer is None))
            if result.answer is not None:
                measured = measure(result.answer, is_improvement=bool(row.get("parent_id")))
                for one in LOGGED:
                    self._log(f"{name}/{one}/mean", float(measured[one]))
        answers = [result.answer for result in results]
        self._log_column("solution_id", [one and one.solution_id for one in answers])
        self._log_column("duration_seconds", [one and one.duration_seconds for one in answers])
        self._log_column("outcome", [outcome_of(result) for result in results])

    def _log(self, name: str, value: float) -> None:
        if self.log_metric is not None:
            self.log_metric(name, value)

    def _log_column(self, column: str, values: list[object]) -> None:
        if self.log_extra is not None:
            self.log_extra(column, values)


@dataclass(frozen=True, slots=True)
class RewardBatch:
    """A batch of TRL: its rows, their submissions, and where it is logged."""

    rows: list[Row]
    items: list[Submission]
    logs: LogFunctions


class RewardFunction:
    """The common part of both functions; `answers` are those of the latest call."""

    def __init__(self, run: Run, name: str = "reward_server") -> None:
        self.run = run
        self.__name__ = name
        self.answers: tuple[Answer | None, ...] = ()
        self._calls = 0
        self._lost_batches = 0

    def _read_batch(
        self,
        prompts: Sequence[object],  # noqa: ARG002  # TRL passes it by name
        completions: Sequence[Completion],
        *,
        trainer_state: TrainerState | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[object]], None] | None = None,
        **columns: object,
    ) -> RewardBatch:
        """Return what TRL passes as submissions. Steps count from 1, as in TRL's logs."""
        self.answers = ()
        self._calls += 1
        prefix = f"{os.environ.get('RANK', '0')}/{self._calls}"
        step = None if trainer_state is None else trainer_state.global_step + 1
        rows = rows_of(columns, len(completions))
        submissions = [
            self.run.submission(row, completion, step=step, name=f"{prefix}/{index}")
            for index, (row, completion) in enumerate(zip(rows, completions, strict=True))
        ]
        items = [replace(submission, idempotency_key=None) for submission in submissions]
        return RewardBatch(rows, items, LogFunctions(log_metric, log_extra))

    @contextmanager
    def _note_run_on_refusal(self, items: Sequence[Submission]) -> Iterator[None]:
        """Add the server, run and tasks to a refusal, because it ends the run."""
        try:
            yield
        except RequestRefusedError as error:
            tasks = sorted({item.task_id for item in items})
            error.add_note(f"reward server {self.run.url}, run {self.run.run_id!r}, tasks {tasks}")
            raise

    def _rewards(self, found: Iterable[Result], batch: RewardBatch) -> list[float | None]:
        """Return the rewards in the order of the rows."""
        results = sorted(found, key=lambda result: result.index)
        answers = tuple(result.answer for result in results)
        self.answers = answers
        batch.logs.write(results, batch.rows, self.__name__)
        if not all(row.get("is_validation") for row in batch.rows):
            self._stop_after_lost_batches(results)
        return [None if answer is None else answer.reward for answer in answers]

    def _stop_after_lost_batches(self, results: Sequence[Result]) -> None:
        """End a run that trains on nothing. A single small batch may be lost by chance."""
        errors = [result.error for result in results if result.error is not None]
        if len(errors) < len(results):
            self._lost_batches = 0
            return
        self._lost_batches += 1
        if self._lost_batches >= _MOST_LOST_BATCHES:
            message = f"none of {len(results)} samples has a reward; the first: {errors[0]}"
            raise InfrastructureError(message)


class SyncReward(RewardFunction):
    """The blocking reward function."""

    def __call__(self, *given: Any, **named: Any) -> list[float | None]:  # noqa: ANN401
        """Return a reward for each completion, and None for lost ones.

        Raises:
            RequestRefusedError: a wrong key or an unknown task.
            InfrastructureError: too many batches in a row were lost.
            ValueError: a row names no task.
        """
        batch = self._read_batch(*given, **named)
        with self._note_run_on_refusal(batch.items), self.run.client() as client:
            results = list(client.score_many(batch.items))
        return self._rewards(results, batch)


class AsyncReward(RewardFunction):
    """The `async` reward function, which TRL runs on its own event loop beside others."""

    async def __call__(self, *given: Any, **named: Any) -> list[float | None]:  # noqa: ANN401
        """Return a reward for each completion as `SyncReward` does."""
        batch = self._read_batch(*given, **named)
        with self._note_run_on_refusal(batch.items):
            async with self.run.async_client() as client:
                results = [result async for result in client.score_many(batch.items)]
        return self._rewards(results, batch)


def make_reward(run: Run, name: str = "reward_server") -> SyncReward:
    """Return a reward function for TRL's trainers; `name` appears in the logs."""
    return SyncReward(run, name)


def make_async_reward(run: Run, name: str = "reward_server") -> AsyncReward:
    """Return an `async` reward function, which TRL runs beside others."""
    return AsyncReward(run, name)


def rows_of(columns: Mapping[str, object], count: int) -> list[Row]:
    """Return TRL's columns as rows, without arguments that are no columns."""
    lists = {name: found for name, found in columns.items() if isinstance(found, list)}
    kept = {name: found for name, found in lists.items() if len(found) == count}
    return [{name: found[index] for name, found in kept.items()} for index in range(count)]


def outcome_of(result: Result) -> str:
    """Return the outcome of a sample in a word."""
    if result.answer is None:
        return "lost" if result.error is None else f"lost: {result.error.kind}"
    return "valid" if result.answer.error is None else result.answer.error.kind
