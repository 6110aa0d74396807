"""The client for trainers that are asynchronous: thousands of samples, a dozen connections.

A submission is accepted by `POST /v1/jobs` under a key of its own, so that whatever is repeated
joins the first; then its job is waited for together with all others (`watch.py`). Nothing is held
open for a single sample, and a server that is restarted meanwhile is asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Literal, Self, Unpack

from trainer_client.client.answers import Result
from trainer_client.client.errors import RewardServerError, SampleLostError
from trainer_client.client.options import HERE, OptionFields, Options, check_url
from trainer_client.client.session import Session
from trainer_client.client.submissions import Fields, Job, Submission, job_of
from trainer_client.client.transport import Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
    from types import TracebackType

    from trainer_client.client.answers import Answer, JsonObject

Rest = Literal["continue", "cancel"]
_READY_SECONDS = 10.0


class AsyncRewardClient:
    """Talks to one reward server from one event loop; see `Options` for the keywords."""

    def __init__(
        self, url: str = HERE, api_key: str | None = None, **options: Unpack[OptionFields]
    ) -> None:
        self._url = check_url(url)
        self._api_key = api_key
        self._options = Options(**options)
        self._session: Session | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; calls that still wait raise RuntimeError, their jobs go on."""
        self._is_closed = True
        if self._session is not None:
            self._session.check_place()
            await self._session.close()

    async def score(
        self,
        task_id: str,
        *,
        deadline_seconds: float | None = None,
        **fields: Unpack[Fields],
    ) -> Answer:
        """Have one submission scored.

        Raises:
            SampleLostError: there is no reward for this sample.
            RequestRefusedError: the request is wrong; so will the next be.
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
        """Have many submissions scored and yield how they ended, in that order.

        With `min_complete` it ends with so many answers. The rest is then cancelled, or goes on at
        the server without us, as far as the server has accepted it. One deadline is for all.

        Raises:
            RequestRefusedError: one of the requests is wrong; so will others be.
        """
        submissions, deadline = list(items), self._deadline(deadline_seconds)
        if min_complete is not None and not 1 <= min_complete <= len(submissions):
            message = "min_complete must be from 1 to the number of items"
            raise ValueError(message)
        cancels = rest == "cancel" or self._options.cancel_on_abandon
        session = self._open()
        scores = [session.score(one, deadline, cancels=cancels) for one in submissions]
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
        """Have one submission accepted, durably, and return its job.

        Raises:
            SampleLostError: it is not known to be accepted.
            RequestRefusedError: the request is wrong.
        """
        submission = Submission(task_id, **fields).with_key()
        return await self._open().submit(submission, self._deadline(deadline_seconds))

    async def wait(self, job: Job | str, *, deadline_seconds: float | None = None) -> Answer:
        """Wait for a job's answer; only one that comes with its submission is ever run again.

        Raises:
            SampleLostError: there is no reward for this sample.
            RequestRefusedError: there is no such job.
        """
        return await self._open().wait(job_of(job), self._deadline(deadline_seconds))

    async def as_completed(
        self, jobs: Iterable[Job | str], *, deadline_seconds: float | None = None
    ) -> AsyncGenerator[Result, None]:
        """Wait for jobs and yield how they ended, in that order; `index` is that in `jobs`.

        Raises:
            RequestRefusedError: one of them does not exist.
        """
        found, deadline = [job_of(job) for job in jobs], self._deadline(deadline_seconds)
        session = self._open()
        waits = [session.wait(job, deadline) for job in found]
        async with contextlib.aclosing(_in_order_of_completion(waits, None)) as results:
            async for result in results:
                yield result

    async def cancel(self, job: Job | str, *, deadline_seconds: float | None = None) -> str:
        """End a job that nobody wants any more and return its state; what has ended stays.

        Raises:
            SampleLostError: it is not known to be cancelled.
            RequestRefusedError: there is no such job.
        """
        return await self._open().cancel(job_of(job), self._deadline(deadline_seconds))

    async def cancel_run(
        self, run_id: str, *, up_to_step: int, deadline_seconds: float | None = None
    ) -> int:
        """End all jobs of a run up to a step that have not ended, and return how many.

        Jobs without a step, and those that were sent with another key, are left alone.

        Raises:
            SampleLostError: they are not known to be cancelled.
            RequestRefusedError: the request is wrong.
        """
        deadline = self._deadline(deadline_seconds)
        return await self._open().cancel_run(run_id, up_to_step, deadline)

    async def prompts(
        self, task_id: str, *, deadline_seconds: float | None = None, **fields: object
    ) -> JsonObject:
        """Get prompts of a task: from scratch, and to improve on what a run did before.

        Raises:
            RewardServerError: when there are none.
        """
        request = Request("POST", "/v1/prompts", {"task_id": task_id, **fields})
        return await self._open().wire.ask(request, self._deadline(deadline_seconds))

    async def get(self, path: str, **query: object) -> JsonObject:
        """Read anything else the server shows.

        Raises:
            RewardServerError: when it shows nothing there.
        """
        given = {name: str(value) for name, value in query.items() if value is not None}
        deadline = self._deadline(None)
        return await self._open().wire.ask(Request("GET", path, query=given), deadline)

    async def ready(self) -> bool:
        """Tell whether the server can score now, without patience."""
        request = Request("GET", "/readyz", answer_seconds=_READY_SECONDS)
        try:
            return (await self._open().wire.ask_once(request)).get("ready") is True
        except RewardServerError:
            return False

    def _open(self) -> Session:
        if self._is_closed:
            message = "the client is closed"
            raise RuntimeError(message)
        if self._session is None:
            self._session = Session(self._url, self._api_key, self._options)
        self._session.check_place()
        return self._session

    def _deadline(self, seconds: float | None) -> float:
        given = self._options.deadline_seconds if seconds is None else seconds
        return asyncio.get_running_loop().time() + given


async def _in_order_of_completion(
    calls: Sequence[Coroutine[None, None, Answer]], enough: int | None
) -> AsyncGenerator[Result, None]:
    """Yield how calls ended until all have, or `enough` of them with an answer.

    Raises:
        RewardServerError: the first that is not the loss of a sample.
    """
    ended: asyncio.Queue[tuple[int, asyncio.Task[Answer]]] = asyncio.Queue()
    tasks = [asyncio.create_task(call) for call in calls]
    for index, task in enumerate(tasks):
        task.add_done_callback(partial(_put, ended, index))
    answers = 0
    try:
        for _ in tasks:
            result = _result(*await ended.get())
            answers += result.answer is not None
            yield result
            if answers == enough:
                return
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _put(
    ended: asyncio.Queue[tuple[int, asyncio.Task[Answer]]], index: int, task: asyncio.Task[Answer]
) -> None:
    ended.put_nowait((index, task))


def _result(index: int, task: asyncio.Task[Answer]) -> Result:
    try:
        return Result(index, task.result(), None)
    except SampleLostError as error:
        return Result(index, None, error)
