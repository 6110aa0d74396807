"""What any process does for all: lost jobs are lent anew, late ones end, batches are closed."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.jobs.workers.liveness import find_dead

if TYPE_CHECKING:
    from pathlib import Path

    from reward_server.jobs.notifier import CompletionNotifier
    from reward_server.store.batches import Batches
    from reward_server.store.queue import Queue

log = logging.getLogger(__name__)

PERIOD_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ReaperConfig:
    """How patient the janitor is, and where workers of this machine show that they live."""

    data_dir: Path
    lease_seconds: float
    queue_seconds: float
    max_attempts: int


async def run_reaper(
    queue: Queue, batches: Batches, endings: CompletionNotifier, rounds: ReaperConfig
) -> None:
    """Make the rounds for ever.

    After a database that did not answer, or a pause of this whole process, workers first get the
    time to say that they live.
    """
    patient_until = 0.0
    while True:
        begun = time.monotonic()
        # Not all servers of one database at the same moment.
        await asyncio.sleep(PERIOD_SECONDS * random.uniform(0.75, 1.0))  # noqa: S311
        try:
            await batches.close()
            await endings.look()
            await queue.give_up(rounds.queue_seconds)
            late = time.monotonic() - begun > PERIOD_SECONDS + rounds.lease_seconds / 3
            if not late and begun >= patient_until:
                await _take_away(queue, rounds)
        except InfrastructureError:
            late = True
        if late:
            patient_until = time.monotonic() + rounds.lease_seconds


async def _take_away(queue: Queue, rounds: ReaperConfig) -> None:
    dead = find_dead(rounds.data_dir, await queue.workers())
    if lost := await queue.expire(rounds.max_attempts, dead):
        log.warning("%d jobs were taken away from workers that are late or dead", lost)
