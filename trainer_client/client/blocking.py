"""The blocking client: runs the asynchronous one on a background thread.

Any number of threads may share a client and its dozen connections. A forked process starts a new
thread and opens new connections on its first call.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from concurrent.futures import CancelledError
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from trainer_client.client.asynchronous import AsyncRewardClient
from trainer_client.client.options import DEFAULT_URL, OptionFields, Options, check_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator

    from trainer_client.client.answers import Result

_P = ParamSpec("_P")
_T = TypeVar("_T")
_SHUTDOWN_SECONDS = 10.0
_CLOSED = "the client is closed"


class _Background:
    """An event loop on a daemon thread, with the asynchronous client that it runs."""

    def __init__(self, client: AsyncRewardClient) -> None:
        self.client = client
        self._lock = threading.Lock()
        self._is_stopping = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="reward client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the background thread and wait. An interruption cancels it."""
        with self._lock:
            if self._is_stopping:
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
        """Yield the results of an asynchronous generator."""
        try:
            while (result := self.run(_next(results))) is not None:
                yield result
        finally:
            # Where the client is closed, its generators are, too.
            with contextlib.suppress(RuntimeError):
                self.run(_end(results))

    def stop(self) -> None:
        """Close the client and end the thread."""
        with self._lock:
            self._is_stopping = True
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result(_SHUTDOWN_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SHUTDOWN_SECONDS)

    def abandon(self) -> None:
        """Tell the thread to close the client and end, without waiting for it.

        The garbage collector calls this, in any thread and at any point. That thread may hold a
        lock that closing needs, so waiting could deadlock.
        """
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._start_shutdown)

    def _start_shutdown(self) -> None:
        self._shutdown = self._loop.create_task(self._shut_down())
        self._shutdown.add_done_callback(lambda _: self._loop.stop())

    def _run_loop(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    async def _shut_down(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        interrupted = [task for task in others if task.cancelling()]
        # They may still cancel their jobs.
        await asyncio.gather(*interrupted, return_exceptions=True)
        await self.client.close()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


async def _next(results: AsyncGenerator[Result, None]) -> Result | None:
    return await anext(results, None)


async def _end(results: AsyncGenerator[Result, None]) -> None:
    await results.aclose()


def _waiting(
    method: Callable[Concatenate[AsyncRewardClient, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[RewardClient, _P], _T]:
    """Return the blocking form of a method, with its signature and documentation."""

    @wraps(method)
    def call(self: RewardClient, /, *args: _P.args, **fields: _P.kwargs) -> _T:
        background = self._open()
        return background.run(method(background.client, *args, **fields))

    return call


def _iterating(
    method: Callable[Concatenate[AsyncRewardClient, _P], AsyncGenerator[Result, None]],
) -> Callable[Concatenate[RewardClient, _P], Iterator[Result]]:
    """Return the blocking form of a method that yields results."""

    @wraps(method)
    def call(self: RewardClient, /, *args: _P.args, **fields: _P.kwargs) -> Iterator[Result]:
        background = self._open()
        return background.pull(method(background.client, *args, **fields))

    return call


class RewardClient:
    """Talks to one reward server from any thread; see `Options` for the keywords.

    Its methods are those of `AsyncRewardClient`; they wait instead of being awaited.
    """

    def __init__(
        self, url: str = DEFAULT_URL, api_key: str | None = None, **options: Unpack[OptionFields]
    ) -> None:
        self._url = check_url(url)
        self._api_key = api_key
        self._options = options
        Options(**options)
        self._lock = threading.Lock()
        self._background: _Background | None = None
        self._finalizer: weakref.finalize[..., RewardClient] | None = None
        self._is_closed = False
        _open_clients.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Pending calls raise RuntimeError; their jobs keep running."""
        with self._lock:
            self._is_closed = True
            finalizer, background = self._finalizer, self._background
            self._finalizer = self._background = None
        if finalizer is not None and background is not None:
            finalizer.detach()
            background.stop()

    score = _waiting(AsyncRewardClient.score)
    score_many = _iterating(AsyncRewardClient.score_many)
    submit = _waiting(AsyncRewardClient.submit)
    wait = _waiting(AsyncRewardClient.wait)
    as_completed = _iterating(AsyncRewardClient.as_completed)
    cancel = _waiting(AsyncRewardClient.cancel)
    cancel_run = _waiting(AsyncRewardClient.cancel_run)
    prompts = _waiting(AsyncRewardClient.prompts)
    get = _waiting(AsyncRewardClient.get)
    ready = _waiting(AsyncRewardClient.ready)

    def _open(self) -> _Background:
        with self._lock:
            if self._is_closed:
                raise RuntimeError(_CLOSED)
            if self._background is None:
                client = AsyncRewardClient(self._url, self._api_key, **self._options)
                self._background = _Background(client)
                self._finalizer = weakref.finalize(self, self._background.abandon)
                self._finalizer.atexit = False
            return self._background

    def _reset_after_fork(self) -> None:
        """Drop, in a forked process, the thread that exists only in the parent.

        Nothing of it may be closed here: both processes share its selector.
        """
        if self._finalizer is not None:
            self._finalizer.detach()
        _abandoned.append(self._background)
        self._lock = threading.Lock()
        self._background = self._finalizer = None


_open_clients: weakref.WeakSet[RewardClient] = weakref.WeakSet()
_abandoned: list[object] = []


def _after_fork() -> None:
    for client in list(_open_clients):
        client._reset_after_fork()  # noqa: SLF001


def _at_exit() -> None:
    for client in list(_open_clients):
        with contextlib.suppress(TimeoutError):  # the process exits anyway
            client.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
