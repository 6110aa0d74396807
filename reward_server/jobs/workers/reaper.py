"""Background care for the whole database, in every process: lost jobs are queued again or ended."""

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
    """When a job counts as lost, and where this machine's workers hold their locks."""

    data_dir: Path
    lease_seconds: float
    queue_seconds: float
    max_attempts: int


async def run_reaper(
    queue: Queue, batches: Batches, notifier: CompletionNotifier, config: ReaperConfig
) -> None:
    """Close complete batches, poll for completions, and take jobs from dead workers, forever.

    When the database has been away, or this whole process was paused, the leases of healthy workers
    have expired as well. The reaper then waits one lease, so that those workers can renew first.
    """
    grace_until = 0.0
    while True:
        begun = time.monotonic()
        # Jitter: the servers of one database must not all do this at the same moment.
        await asyncio.sleep(PERIOD_SECONDS * random.uniform(0.75, 1.0))  # noqa: S311
        try:
            await batches.close()
            await notifier.poll()
            await queue.give_up(config.queue_seconds)
            is_late = time.monotonic() - begun > PERIOD_SECONDS + config.lease_seconds / 3
            if not is_late and begun >= grace_until:
                await _expire_leases(queue, config)
        except InfrastructureError:
            is_late = True
        if is_late:
            grace_until = time.monotonic() + config.lease_seconds


async def _expire_leases(queue: Queue, config: ReaperConfig) -> None:
    dead = find_dead(config.data_dir, await queue.workers())
    if lost := await queue.expire(config.max_attempts, dead):
        log.warning("%d jobs were lost: their workers are dead or too slow to renew", lost)
