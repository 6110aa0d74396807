"""The life of a sample: submitted, waited for, sent again if the server lost it, let go.

A session belongs to the event loop and the process in which it was opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from trainer_client.client.answers import bad_answer, read_answer
from trainer_client.client.errors import (
    Circumstances,
    DeadlineExceededError,
    InfrastructureError,
    RequestRefusedError,
    RewardServerError,
)
from trainer_client.client.job_poller import JobPoller
from trainer_client.client.replies import job_error
from trainer_client.client.submissions import Job
from trainer_client.client.transport import Request, Transport

if TYPE_CHECKING:
    from trainer_client.client.answers import Answer, JsonObject
    from trainer_client.client.job_poller import Ending
    from trainer_client.client.options import Options
    from trainer_client.client.submissions import Submission

_CLEANUP_SECONDS = 5.0


class Session:
    """What a client has once it is in use."""

    def __init__(self, url: str, api_key: str | None, options: Options) -> None:
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._resubmissions = options.resubmissions
        self._watch = JobPoller(wire := Transport(url, api_key, options))
        self.wire = wire

    def check_place(self) -> None:
        """See to it that we are where the connections are.

        Raises:
            RuntimeError: in another event loop, or after a fork.
        """
        if self._loop is not asyncio.get_running_loop() or self._pid != os.getpid():
            message = (
                "an AsyncRewardClient belongs to the event loop and the process that first used "
                "it: make one for each, or use a RewardClient, which may be used from anywhere"
            )
            raise RuntimeError(message)

    async def close(self) -> None:
        """Stop waiting and close the connections."""
        await self._watch.close()
        await self.wire.close()

    async def score(self, submission: Submission, deadline: float, *, cancels: bool) -> Answer:
        """Have one submission scored; with `cancels` its job ends with our interest in it.

        Raises:
            RewardServerError: there is no reward.
        """
        sending = asyncio.create_task(self.submit(submission.with_key(), deadline))
        try:
            return await self.wait(await asyncio.shield(sending), deadline)
        except (asyncio.CancelledError, DeadlineExceededError):
            await self._abandon(sending, cancels=cancels)
            raise

    async def submit(self, submission: Submission, deadline: float) -> Job:
        """Have a submission accepted.

        Raises:
            RewardServerError: it is not known to be accepted.
        """
        try:
            reply = await self.wire.submit(submission.body(), deadline)
        except RewardServerError as error:
            raise error.about(key=submission.idempotency_key) from error.__cause__
        job_id = reply.get("job_id")
        if not isinstance(job_id, str):
            message = "the submission was answered without a job_id"
            raise bad_answer(message).about(key=submission.idempotency_key)
        return Job(job_id, submission)

    async def wait(self, job: Job, deadline: float) -> Answer:
        """Wait for a job's answer; one that the server lost is sent again a few times.

        Raises:
            RewardServerError: there is no reward.
        """
        for left in range(self._resubmissions, -1, -1):
            ending = await self._ending(job, deadline)
            if ending.get("error") is None:
                return read_answer(ending.get("answer"))
            error = _loss(job, ending["error"])
            may_help = isinstance(error, InfrastructureError) and error.retryable
            if left == 0 or not may_help or job.submission is None:
                raise error
            job = await self.submit(job.submission, deadline)
        raise AssertionError  # the last round returns or raises

    async def cancel(self, job: Job, deadline: float) -> str:
        """End a job and return its state.

        Raises:
            RewardServerError: it is not known to be cancelled.
        """
        return str((await self._ask("DELETE", job, deadline)).get("status"))

    async def cancel_run(self, run_id: str, up_to_step: int, deadline: float) -> int:
        """End what has not ended of a run up to a step and return how many jobs that were.

        Raises:
            RewardServerError: they are not known to be cancelled.
        """
        body = {"run_id": run_id, "up_to_step": up_to_step}
        reply = await self.wire.ask(Request("POST", "/v1/jobs/cancel", body), deadline)
        cancelled = reply.get("cancelled")
        if not isinstance(cancelled, int):
            message = "the cancellation was answered without a number"
            raise bad_answer(message)
        return cancelled

    async def _ask(self, method: str, job: Job, deadline: float) -> JsonObject:
        try:
            return await self.wire.ask(Request(method, f"/v1/jobs/{job.job_id}"), deadline)
        except RewardServerError as error:
            raise error.about(job_id=job.job_id) from error.__cause__

    async def _ending(self, job: Job, deadline: float) -> Ending:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._watch.ending(job.job_id)
        except TimeoutError:
            message = "the deadline passed before the job had ended"
            known = Circumstances(kind="deadline_exceeded", retryable=True)
            error = DeadlineExceededError(message, known)
            raise error.about(job_id=job.job_id, key=_key(job)) from None

    async def _abandon(self, sending: asyncio.Task[Job], *, cancels: bool) -> None:
        """Let go of a job; to cancel it is tried for a moment, even if it is just being sent."""
        if not cancels:
            sending.cancel()
            await asyncio.wait({sending})
            return
        with contextlib.suppress(RewardServerError, TimeoutError):
            async with asyncio.timeout(_CLEANUP_SECONDS):
                await self.cancel(await sending, self._loop.time() + _CLEANUP_SECONDS)


def _loss(job: Job, problem: JsonObject) -> RewardServerError:
    """Return why a job has no answer; that a job of ours is unknown is the server's fault."""
    error = job_error(problem, job.job_id)
    if job.submission is None or not isinstance(error, RequestRefusedError):
        return error.about(key=_key(job))
    known = Circumstances(kind=error.kind, retryable=True)
    message = f"the server has lost the job: {error.message}"
    return InfrastructureError(message, known).about(job_id=job.job_id, key=_key(job))


def _key(job: Job) -> str | None:
    return None if job.submission is None else job.submission.idempotency_key
