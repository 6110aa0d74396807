"""The life of a sample: submit, wait, resubmit if the server lost it, abandon.

A session belongs to the event loop and the process that opened it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from trainer_client.client.answers import bad_answer, read_answer
from trainer_client.client.errors import (
    DeadlineExceededError,
    ErrorDetails,
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
    from trainer_client.client.job_poller import EndedJob
    from trainer_client.client.options import Options
    from trainer_client.client.submissions import Submission

_CLEANUP_SECONDS = 5.0


class Session:
    """The connections of a client that is in use."""

    def __init__(self, url: str, api_key: str | None, options: Options) -> None:
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._resubmissions = options.resubmissions
        self._poller = JobPoller(transport := Transport(url, api_key, options))
        self.transport = transport

    def check_owner(self) -> None:
        """Check that the caller is in the event loop and process of the connections.

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
        await self._poller.close()
        await self.transport.close()

    async def score(self, submission: Submission, deadline: float, *, cancels: bool) -> Answer:
        """Score one submission. With `cancels`, an abandoned call cancels its job.

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
        """Submit a job.

        Raises:
            RewardServerError: it is not known whether the server accepted it.
        """
        try:
            reply = await self.transport.submit(submission.body(), deadline)
        except RewardServerError as error:
            raise error.with_ids(key=submission.idempotency_key) from error.__cause__
        job_id = reply.get("job_id")
        if not isinstance(job_id, str):
            message = "the submission was answered without a job_id"
            raise bad_answer(message).with_ids(key=submission.idempotency_key)
        return Job(job_id, submission)

    async def wait(self, job: Job, deadline: float) -> Answer:
        """Wait for a job's answer. Resubmit a job that the server lost, a few times.

        Raises:
            RewardServerError: there is no reward.
        """
        for left in range(self._resubmissions, -1, -1):
            ended_job = await self._wait_until_ended(job, deadline)
            if ended_job.get("error") is None:
                return read_answer(ended_job.get("answer"))
            error = _loss(job, ended_job["error"])
            may_help = isinstance(error, InfrastructureError) and error.retryable
            if left == 0 or not may_help or job.submission is None:
                raise error
            job = await self.submit(job.submission, deadline)
        raise AssertionError  # the last iteration returns or raises

    async def cancel(self, job: Job, deadline: float) -> str:
        """Cancel a job and return its state."""
        try:
            reply = await self.transport.ask(Request("DELETE", f"/v1/jobs/{job.job_id}"), deadline)
        except RewardServerError as error:
            raise error.with_ids(job_id=job.job_id) from error.__cause__
        return str(reply.get("status"))

    async def _wait_until_ended(self, job: Job, deadline: float) -> EndedJob:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._poller.wait(job.job_id)
        except TimeoutError:
            message = "the deadline passed before the job had ended"
            known = ErrorDetails(kind="deadline_exceeded", retryable=True)
            error = DeadlineExceededError(message, known)
            raise error.with_ids(job_id=job.job_id, key=_key(job)) from None

    async def _abandon(self, sending: asyncio.Task[Job], *, cancels: bool) -> None:
        """Abandon a job. Try briefly to cancel it, even while its submission is under way."""
        if not cancels:
            sending.cancel()
            await asyncio.wait({sending})
            return
        with contextlib.suppress(RewardServerError, TimeoutError):
            async with asyncio.timeout(_CLEANUP_SECONDS):
                await self.cancel(await sending, self._loop.time() + _CLEANUP_SECONDS)


def _loss(job: Job, problem: JsonObject) -> RewardServerError:
    """Return why a job has no answer. If the server forgot our job, the server is to blame."""
    error = job_error(problem, job.job_id)
    if job.submission is None or not isinstance(error, RequestRefusedError):
        return error.with_ids(key=_key(job))
    known = ErrorDetails(kind=error.kind, retryable=True)
    message = f"the server has lost the job: {error.message}"
    return InfrastructureError(message, known).with_ids(job_id=job.job_id, key=_key(job))


def _key(job: Job) -> str | None:
    return None if job.submission is None else job.submission.idempotency_key
