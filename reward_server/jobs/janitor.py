"""What any process does for all: lost jobs are lent anew, late ones end, batches are closed."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError

if TYPE_CHECKING:
    from reward_server.jobs.endings import Endings
    from reward_server.store.batches import Batches
    from reward_server.store.queue import Queue

log = logging.getLogger(__name__)

PERIOD_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Rounds:
    """How patient the janitor is."""

    lease_seconds: float
    queue_seconds: float
    max_attempts: int


async def keep_house(queue: Queue, batches: Batches, endings: Endings, rounds: Rounds) -> None:
    """Make the rounds for ever.

    After a database that did not answer, workers first get the time to say that they live.
    """
    patient_until = 0.0
    while True:
        await asyncio.sleep(PERIOD_SECONDS)
        begun = time.monotonic()
        try:
            await batches.close()
            await endings.look()
            await queue.give_up(rounds.queue_seconds)
            if begun >= patient_until and (lost := await queue.expire(rounds.max_attempts)):
                log.warning("%d jobs were taken away from workers that are late", lost)
        except InfrastructureError:
            patient_until = time.monotonic() + rounds.lease_seconds
        if time.monotonic() - begun > rounds.lease_seconds / 3:
            patient_until = time.monotonic() + rounds.lease_seconds
