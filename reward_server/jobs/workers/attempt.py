"""One attempt at a leased job: run it to its stored verdict, or decide what follows a fault.

A program's failure is a verdict and ends the job. A fault of this server's own ends the attempt:
`_after_fault` decides between another attempt, which the store numbers, and the end of the job.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError, RequestError, SetupError, boundary
from reward_server.jobs.workers.circuit_breaker import CircuitBreaker
from reward_server.model import ErrorKind
from reward_server.pipeline import run_pipeline

if TYPE_CHECKING:
    from reward_server.jobs.metrics import Metrics
    from reward_server.jobs.notifier import CompletionNotifier
    from reward_server.jobs.workers.result_cache import ResultCache
    from reward_server.pipeline import Stages
    from reward_server.store.queue import Queue
    from reward_server.store.values import LeasedJob, StoredAnswer
    from reward_server.tasks.registry import Registry

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.5
# A grader error is not transient: the grader would fail again on the same file, after another
# whole run of the program.
_TRANSIENT = frozenset(
    {
        ErrorKind.SANDBOX_LOST,
        ErrorKind.SANDBOX_UNAVAILABLE,
        ErrorKind.STORE_ERROR,
        ErrorKind.WORKER_LOST,
    }
)
_NO_TASK = "the worker that took the job cannot serve its task"
OUT_OF_TIME = "the job has used up its time over all attempts"


class AttemptRunner:
    """Runs attempts; one failed start of a sandbox opens the circuit breaker for all."""

    def __init__(  # noqa: PLR0913, PLR0917 - one argument a collaborator
        self,
        stages: Stages,
        queue: Queue,
        registry: Registry,
        notifier: CompletionNotifier,
        metrics: Metrics,
        max_attempts: int,
        result_cache: ResultCache | None = None,
    ) -> None:
        self.stages = stages
        self.registry = registry
        self.breaker = CircuitBreaker()
        self._queue = queue
        self._notifier = notifier
        self._metrics = metrics
        self._max_attempts = max_attempts
        self._result_cache = result_cache

    async def run(self, job: LeasedJob) -> None:
        """Run a job in the time it has left, and notify those who wait for it."""
        answer = None
        try:
            async with asyncio.timeout(max(0.0, job.left_seconds)):
                answer = await self._answer(job)
        except (RequestError, SetupError):
            log.exception("job %s: this worker cannot serve its task", job.job_id)
            await self._fail(job, ErrorKind.WORKER_LOST, _NO_TASK)
        except TimeoutError:
            await self._fail(job, ErrorKind.WORKER_LOST, OUT_OF_TIME)
        except InfrastructureError as error:
            await self._after_fault(job, error)
        else:
            if answer.execution.duration_seconds > 0 and answer.reused_from is None:
                self.breaker.record_success()
            self._metrics.record_answer(answer)
        self._notifier.notify(job.job_id, answer)

    async def _answer(self, job: LeasedJob) -> StoredAnswer:
        task = self.registry.get(job.submission.task_id)
        with boundary(ErrorKind.WORKER_LOST, "worker"):
            if self._result_cache is not None:
                known = await self._result_cache.find(job, task, self.stages)
                if known is not None:
                    return await self.stages.recorder.record(job.job_id, job.attempt, known)
            return await run_pipeline(job, task, self.stages)

    async def _after_fault(self, job: LeasedJob, error: InfrastructureError) -> None:
        """Retry a job after a transient fault of ours, or end it without a reward."""
        if error.kind is ErrorKind.CANCELLED:
            return
        is_unavailable = error.kind is ErrorKind.SANDBOX_UNAVAILABLE
        # While the breaker is open, a start that fails is expected: it costs the job no attempt.
        is_fault = not (is_unavailable and self.breaker.is_open)
        if is_unavailable:
            self.breaker.record_failure()
        if error.kind in _TRANSIENT and await self._retry(job, is_fault=is_fault):
            log.warning("job %s is retried: %s", job.job_id, error.message)
            return
        self._metrics.record_error(job.submission.task_id, error.kind.value)
        log.error("job %s ended without a reward: %s", job.job_id, error.message)
        await self._fail(job, error.kind, error.message)

    async def _retry(self, job: LeasedJob, *, is_fault: bool) -> bool:
        """Queue a job for its next attempt; False when it has none or no time left."""
        pause_seconds = self.breaker.pause_seconds or _PAUSE_SECONDS * job.attempt
        try:
            return await self._queue.retry(
                job.job_id,
                job.attempt,
                self._max_attempts,
                pause_seconds,
                is_fault=is_fault,
            )
        except InfrastructureError:
            return True  # the lease expires, and the reaper queues the job

    async def _fail(self, job: LeasedJob, kind: ErrorKind, message: str) -> None:
        with suppress(InfrastructureError):  # the lease expires, here too
            await self._queue.fail(job.job_id, job.attempt, kind, message)
