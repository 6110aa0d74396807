"""A server that loses what a test wants lost: the real one, behind something that lies of jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.integration.verl.failing import LOST, FailingServer

if TYPE_CHECKING:
    import httpx


class LosingServer(FailingServer):
    """Forwards requests, and reports an infrastructure failure for jobs with a marked text."""

    def __init__(self, url: str, marker: str) -> None:
        super().__init__(url)
        self._marker = marker
        self._doomed: set[str] = set()

    async def _pass(self, there: httpx.AsyncClient, line: str, body: bytes) -> bytes:
        answer = await super()._pass(there, line, body)
        if line.startswith("POST /v1/jobs ") and self._marker in json.loads(body)["completion"]:
            self._doomed.add(json.loads(answer.partition(b"\r\n\r\n")[2])["job_id"])
        return answer

    def _lose(self, reply: dict[str, Any]) -> dict[str, Any]:
        for ending in reply["ended"]:
            if ending["job_id"] in self._doomed:
                ending.update(answer=None, error=LOST)
                self.lost.add(ending["job_id"])
            else:
                self.kept.add(ending["job_id"])
        return reply
