"""Pruning old solutions and outputs in the background, as the settings allow."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reward_server.store.solutions.pruning import Position, Pruned, Pruning

log = logging.getLogger(__name__)

_PASS_SECONDS = 3600.0
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Retention:
    """How long outputs and losing solutions are kept (None: forever), and how many of the best."""

    outputs_seconds: float | None
    solutions_seconds: float | None
    keep_best: int


async def keep_pruning(pruning: Pruning, retention: Retention) -> None:
    """Prune every hour, page by page."""
    while True:
        try:
            await prune_all(pruning, retention)
        except InfrastructureError:
            log.warning("could not prune old solutions; the next pass tries again")
        await asyncio.sleep(_PASS_SECONDS)


async def prune_all(pruning: Pruning, retention: Retention) -> tuple[int, int]:
    """Prune once; return how many outputs and how many solutions were deleted.

    Raises:
        InfrastructureError: `store_error`.
    """
    solutions = outputs = 0
    if (seconds := retention.solutions_seconds) is not None:
        solutions = await _pass(pruning.forget_solutions, seconds, retention.keep_best)
        while await pruning.forget_lost_jobs(seconds):  # noqa: ASYNC110 - a pause, not a wait
            await asyncio.sleep(_PAUSE_SECONDS)
    if (seconds := retention.outputs_seconds) is not None:
        outputs = await _pass(pruning.forget_outputs, seconds, retention.keep_best)
    if outputs or solutions:
        log.info("pruned %d outputs and %d solutions", outputs, solutions)
    return outputs, solutions


async def _pass(
    prune: Callable[[float, int, Position | None], Awaitable[Pruned]],
    age_seconds: float,
    keep_best: int,
) -> int:
    changed, page = 0, await prune(age_seconds, keep_best, None)
    while page.position is not None:
        changed += page.changed
        await asyncio.sleep(_PAUSE_SECONDS)
        page = await prune(age_seconds, keep_best, page.position)
    return changed
