"""Many calls at once, told in the order in which they end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from trainer_client.client.answers import Result
from trainer_client.client.errors import SampleLostError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Sequence

    from trainer_client.client.answers import Answer


async def as_completed(
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
