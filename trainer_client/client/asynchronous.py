"""The asynchronous client: thousands of pending samples over a dozen connections.

`POST /v1/jobs` accepts a submission under an idempotency key, so a retry joins the first job. One
poller then waits for all jobs together (`job_poller.py`). No connection stays open for a single
sample, and the client keeps retrying while the server restarts.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Literal, Self, Unpack

from trainer_client.client.answers import Result, bad_answer
from trainer_client.client.errors import RewardServerError, SampleLostError
from trainer_client.client.options import DEFAULT_URL, OptionFields, Options, check_url
from trainer_client.client.session import Session
from trainer_client.client.submissions import Fields, Job, Submission, job_of
from trainer_client.client.transport import Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable

    from trainer_client.client.answers import Answer, JsonObject

Rest = Literal["continue", "cancel"]
_READY_SECONDS = 10.0


class AsyncRewardClient:
    """Talks to one reward server from one event loop; see `Options` for the keywords."""

    def __init__(
        self, url: str = DEFAULT_URL, api_key: str | None = None, **options: Unpack[OptionFields]
    ) -> None:
        self._url = check_url(url)
        self._api_key = api_key
        self._options = Options(**options)
        self._session: Session | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Pending calls raise RuntimeError; their jobs keep running."""
        self._is_closed = True
        if self._session is not None:
            self._session.check_owner()
            await self._session.close()

    async def score(
        self,
        task_id: str,
        *,
        deadline_seconds: float | None = None,
        **fields: Unpack[Fields],
    ) -> Answer:
        """Score one submission.

        Raises:
            SampleLostError: this sample has no reward.
            RequestRefusedError: the request is wrong, and so would the next one be.
        """
        return await self._open().score(
            Submission(task_id, **fields),
            self._deadline(deadline_seconds),
            cancels=self._options.cancel_on_abandon,
        )

    async def score_many(
        self,
        items: Iterable[Submission],
        *,
        min_complete: int | None = None,
        rest: Rest = "continue",
        deadline_seconds: float | None = None,
    ) -> AsyncGenerator[Result, None]:
        """Score many submissions and yield the results in order of completion.

        With `min_complete` the iteration ends after that many answers. `rest` decides whether the
        remaining jobs are cancelled or continue on the server. One deadline covers all submissions.

        Raises:
            RequestRefusedError: one of the requests is wrong.
        """
        submissions, deadline = list(items), self._deadline(deadline_seconds)
        if min_complete is not None and not 1 <= min_complete <= len(submissions):
            message = "min_complete must be from 1 to the number of items"
            raise ValueError(message)
        cancels = rest == "cancel" or self._options.cancel_on_abandon
        session = self._open()
        scores = [partial(session.score, one, deadline, cancels=cancels) for one in submissions]
        async with contextlib.aclosing(_in_order_of_completion(scores, min_complete)) as results:
            async for result in results:
                yield result

    async def submit(
        self,
        task_id: str,
        *,
        deadline_seconds: float | None = None,
        **fields: Unpack[Fields],
    ) -> Job:
        """Submit without waiting, and return the job. The server has stored it durably.

        Raises:
            SampleLostError: it is not known whether the server accepted it.
            RequestRefusedError: the request is wrong.
        """
        submission = Submission(task_id, **fields).with_key()
        return await self._open().submit(submission, self._deadline(deadline_seconds))

    async def wait(self, job: Job | str, *, deadline_seconds: float | None = None) -> Answer:
        """Wait for a job's answer. Only a `Job` with its submission can be resubmitted if lost.

        Raises:
            SampleLostError: this sample has no reward.
            RequestRefusedError: the server does not know the job.
        """
        return await self._open().wait(job_of(job), self._deadline(deadline_seconds))

    async def as_completed(
        self, jobs: Iterable[Job | str], *, deadline_seconds: float | None = None
    ) -> AsyncGenerator[Result, None]:
        """Wait for jobs and yield results in order of completion; `index` refers to `jobs`.

        Raises:
            RequestRefusedError: the server does not know one of them.
        """
        found, deadline = [job_of(job) for job in jobs], self._deadline(deadline_seconds)
        session = self._open()
        waits = [partial(session.wait, job, deadline) for job in found]
        async with contextlib.aclosing(_in_order_of_completion(waits, None)) as results:
            async for result in results:
                yield result

    async def cancel(self, job: Job | str, *, deadline_seconds: float | None = None) -> str:
        """Cancel a job and return its state. A job that has ended keeps its result.

        Raises:
            SampleLostError: it is not known whether the job was cancelled.
            RequestRefusedError: the server does not know the job.
        """
        return await self._open().cancel(job_of(job), self._deadline(deadline_seconds))

    async def cancel_run(
        self, run_id: str, *, up_to_step: int, deadline_seconds: float | None = None
    ) -> int:
        """Cancel all pending jobs of a run up to a step, and return how many.

        Jobs without a step and jobs submitted with another API key are not affected.

        Raises:
            SampleLostError: it is not known whether they were cancelled.
            RequestRefusedError: the request is wrong.
        """
        body = {"run_id": run_id, "up_to_step": up_to_step}
        request = Request("POST", "/v1/jobs/cancel", body)
        reply = await self._open().transport.ask(request, self._deadline(deadline_seconds))
        cancelled = reply.get("cancelled")
        if not isinstance(cancelled, int):
            message = "the cancellation was answered without a number"
            raise bad_answer(message)
        return cancelled

    async def prompts(
        self, /, task_id: str, *, deadline_seconds: float | None = None, **fields: object
    ) -> JsonObject:
        """Get prompts for a task: from scratch, or to improve on earlier solutions of a run.

        Raises:
            RewardServerError: the server returns none.
        """
        request = Request("POST", "/v1/prompts", {"task_id": task_id, **fields})
        return await self._open().transport.ask(request, self._deadline(deadline_seconds))

    async def get(self, /, path: str, **query: object) -> JsonObject:
        """Send a GET request for any other resource.

        Raises:
            RewardServerError: the request fails.
        """
        given = {name: str(value) for name, value in query.items() if value is not None}
        deadline = self._deadline(None)
        return await self._open().transport.ask(Request("GET", path, query=given), deadline)

    async def ready(self) -> bool:
        """Check once, without retries, whether the server can score now."""
        request = Request("GET", "/readyz", answer_seconds=_READY_SECONDS)
        try:
            return (await self._open().transport.ask_once(request)).get("ready") is True
        except RewardServerError:
            return False

    def _open(self) -> Session:
        if self._is_closed:
            message = "the client is closed"
            raise RuntimeError(message)
        if self._session is None:
            self._session = Session(self._url, self._api_key, self._options)
        self._session.check_owner()
        return self._session

    def _deadline(self, seconds: float | None) -> float:
        given = self._options.deadline_seconds if seconds is None else seconds
        return asyncio.get_running_loop().time() + given


async def _in_order_of_completion(
    calls: Iterable[Callable[[], Coroutine[None, None, Answer]]], enough: int | None
) -> AsyncGenerator[Result, None]:
    """Yield results until all calls have ended, or `enough` of them with an answer."""
    tasks = [asyncio.create_task(_result(index, call)) for index, call in enumerate(calls)]
    answers = 0
    try:
        for ended in asyncio.as_completed(tasks):
            result = await ended
            answers += result.answer is not None
            yield result
            if answers == enough:
                return
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _result(index: int, call: Callable[[], Coroutine[None, None, Answer]]) -> Result:
    try:
        return Result(index, await call(), None)
    except SampleLostError as error:
        return Result(index, None, error)
