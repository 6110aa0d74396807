"""The client for everybody else: the asynchronous one, on a thread of its own.

Any number of threads may share it; they share its dozen connections, too. A process that was
forked gets a thread and connections of its own with its first call.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from trainer_client.client.asynchronous import AsyncRewardClient
from trainer_client.client.options import HERE, OptionFields, Options, check_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator
    from types import TracebackType

    from trainer_client.client.answers import Answer, JsonObject, Result
    from trainer_client.client.asynchronous import Rest
    from trainer_client.client.submissions import Fields, Job, Submission

_T = TypeVar("_T")
_LEAVE_SECONDS = 10.0
_CLOSED = "the client is closed"


class _Background:
    """An event loop on a daemon thread, and the client that lives there."""

    def __init__(self, client: AsyncRewardClient) -> None:
        self.client = client
        self._lock = threading.Lock()
        self._is_leaving = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="reward client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run something there and wait for it; an interruption here ends it there."""
        with self._lock:
            if self._is_leaving:
                work.close()
                raise RuntimeError(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError(_CLOSED) from None
        finally:
            future.cancel()

    def pull(self, results: AsyncGenerator[Result, None]) -> Iterator[Result]:
        """Yield here what is yielded there."""
        try:
            while (result := self.run(_next(results))) is not None:
                yield result
        finally:
            with contextlib.suppress(RuntimeError):  # closed, and with it all that it yielded
                self.run(_end(results))

    def stop(self) -> None:
        """Close the client and end the thread."""
        with self._lock:
            self._is_leaving = True
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(_LEAVE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LEAVE_SECONDS)

    def abandon(self) -> None:
        """Let the thread close the client and end, and do not wait for it.

        For the collector of garbage, who may come by in any thread and in the midst of anything:
        what the closing needs may be held by the very thread that would wait for it.
        """
        with contextlib.suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._depart)

    def _depart(self) -> None:
        self._departure = self._loop.create_task(self._leave())
        self._departure.add_done_callback(lambda _: self._loop.stop())

    def _live(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    async def _leave(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        interrupted = [task for task in others if task.cancelling()]
        await asyncio.gather(*interrupted, return_exceptions=True)  # they may cancel their jobs
        await self.client.close()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


async def _next(results: AsyncGenerator[Result, None]) -> Result | None:
    return await anext(results, None)


async def _end(results: AsyncGenerator[Result, None]) -> None:
    await results.aclose()


class RewardClient:
    """Talks to one reward server from any thread; see `Options` for the keywords."""

    def __init__(
        self, url: str = HERE, api_key: str | None = None, **options: Unpack[OptionFields]
    ) -> None:
        self._url = check_url(url)
        self._api_key = api_key
        self._options = options
        Options(**options)
        self._lock = threading.Lock()
        self._background: _Background | None = None
        self._farewell: weakref.finalize[..., RewardClient] | None = None
        self._is_closed = False
        _living.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; calls that still wait raise RuntimeError, their jobs go on."""
        with self._lock:
            self._is_closed = True
            farewell, background = self._farewell, self._background
            self._farewell = self._background = None
        if farewell is not None and background is not None:
            farewell.detach()
            background.stop()

    def score(
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
        there = self._open()
        return there.run(there.client.score(task_id, deadline_seconds=deadline_seconds, **fields))

    def score_many(
        self,
        items: Iterable[Submission],
        *,
        min_complete: int | None = None,
        rest: Rest = "continue",
        deadline_seconds: float | None = None,
    ) -> Iterator[Result]:
        """Have many submissions scored and yield how they ended, in that order.

        With `min_complete` it ends with so many answers. The rest is then cancelled, or goes on at
        the server without us, as far as the server has accepted it. One deadline is for all.

        Raises:
            RequestRefusedError: one of the requests is wrong; so will others be.
        """
        there = self._open()
        results = there.client.score_many(
            items, min_complete=min_complete, rest=rest, deadline_seconds=deadline_seconds
        )
        return there.pull(results)

    def submit(
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
        there = self._open()
        return there.run(there.client.submit(task_id, deadline_seconds=deadline_seconds, **fields))

    def wait(self, job: Job | str, *, deadline_seconds: float | None = None) -> Answer:
        """Wait for a job's answer; only one that comes with its submission is ever run again.

        Raises:
            SampleLostError: there is no reward for this sample.
            RequestRefusedError: there is no such job.
        """
        there = self._open()
        return there.run(there.client.wait(job, deadline_seconds=deadline_seconds))

    def as_completed(
        self, jobs: Iterable[Job | str], *, deadline_seconds: float | None = None
    ) -> Iterator[Result]:
        """Wait for jobs and yield how they ended, in that order; `index` is that in `jobs`.

        Raises:
            RequestRefusedError: one of them does not exist.
        """
        there = self._open()
        results = there.client.as_completed(jobs, deadline_seconds=deadline_seconds)
        return there.pull(results)

    def cancel(self, job: Job | str, *, deadline_seconds: float | None = None) -> str:
        """End a job that nobody wants any more and return its state; what has ended stays.

        Raises:
            SampleLostError: it is not known to be cancelled.
            RequestRefusedError: there is no such job.
        """
        there = self._open()
        return there.run(there.client.cancel(job, deadline_seconds=deadline_seconds))

    def cancel_run(
        self, run_id: str, *, up_to_step: int, deadline_seconds: float | None = None
    ) -> int:
        """End all jobs of a run up to a step that have not ended, and return how many.

        Jobs without a step, and those that were sent with another key, are left alone.

        Raises:
            SampleLostError: they are not known to be cancelled.
            RequestRefusedError: the request is wrong.
        """
        there = self._open()
        return there.run(
            there.client.cancel_run(
                run_id, up_to_step=up_to_step, deadline_seconds=deadline_seconds
            )
        )

    def prompts(
        self, task_id: str, *, deadline_seconds: float | None = None, **fields: object
    ) -> JsonObject:
        """Get prompts of a task: from scratch, and to improve on what a run did before.

        Raises:
            RewardServerError: when there are none.
        """
        there = self._open()
        return there.run(there.client.prompts(task_id, deadline_seconds=deadline_seconds, **fields))

    def get(self, path: str, **query: object) -> JsonObject:
        """Read anything else the server shows.

        Raises:
            RewardServerError: when it shows nothing there.
        """
        there = self._open()
        return there.run(there.client.get(path, **query))

    def ready(self) -> bool:
        """Tell whether the server can score now, without patience."""
        there = self._open()
        return there.run(there.client.ready())

    def _open(self) -> _Background:
        with self._lock:
            if self._is_closed:
                raise RuntimeError(_CLOSED)
            if self._background is None:
                client = AsyncRewardClient(self._url, self._api_key, **self._options)
                self._background = _Background(client)
                self._farewell = weakref.finalize(self, self._background.abandon)
                self._farewell.atexit = False
            return self._background

    def _begin_anew(self) -> None:
        """Forget, in a forked process, the thread that stayed behind in the other.

        Nothing of it may be closed here: its selector is one and the same in both processes.
        """
        if self._farewell is not None:
            self._farewell.detach()
        _left_behind.append(self._background)
        self._lock = threading.Lock()
        self._background = self._farewell = None


_living: weakref.WeakSet[RewardClient] = weakref.WeakSet()
_left_behind: list[object] = []


def _after_fork() -> None:
    for client in list(_living):
        client._begin_anew()  # noqa: SLF001


def _at_exit() -> None:
    for client in list(_living):
        with contextlib.suppress(TimeoutError):  # the process ends in any case
            client.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
