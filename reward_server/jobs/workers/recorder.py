"""Storing a verdict even when the database is away: a verdict may hold hours of work."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from reward_server.errors import InfrastructureError
from reward_server.model import ErrorKind

if TYPE_CHECKING:
    from uuid import UUID

    from reward_server.model import Verdict
    from reward_server.store.queries import Store
    from reward_server.store.values import StoredAnswer

log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0


class RetryingRecorder:
    """Retries until the database answers or the job is out of time.

    Recording is idempotent: if a lost reply hid a success, the retry returns the stored result.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def record(self, job_id: UUID, attempt: int, verdict: Verdict) -> StoredAnswer:
        """Store a verdict and return it as it stands in the store.

        Raises:
            InfrastructureError: `cancelled`, or `worker_lost` when the attempt is not current.
        """
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return await self._store.record(job_id, attempt, verdict)
            except InfrastructureError as error:
                if error.kind is not ErrorKind.STORE_ERROR:
                    raise
                log.warning("the verdict of job %s cannot be stored yet", job_id)
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
