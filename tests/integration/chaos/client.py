"""A client that records a history: it submits, polls, waits and cancels through any server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx

from tests.integration.chaos.history import (
    Answered,
    BatchLook,
    Cancel,
    JobOutcome,
    Lost,
    Observation,
    Oddity,
    Open,
    Span,
    Submit,
)
from tests.integration.chaos.programs import TASK

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.integration.chaos.history import History, View
    from tests.integration.chaos.programs import Program
    from tests.integration.chaos.world.cluster import Member

_TIMEOUT_SECONDS = 100.0  # longer than any statement may take, so that a hang is detected
_OPEN = ("queued", "running")


class Client:
    """Sends requests to random servers, and records their outcomes."""

    def __init__(self, servers: Sequence[Member], history: History, rng: random.Random) -> None:
        self._servers = servers
        self._history = history
        self._rng = rng
        self._http = httpx.Client(timeout=_TIMEOUT_SECONDS)

    def close(self) -> None:
        self._http.close()

    def submit(self, key: str, program: Program, server: Member | None = None) -> str | None:
        """Send a program once and return its job, if that is known now."""
        begun = time.monotonic()
        response = self._request("POST", "/v1/jobs", _item(key, program), server)
        span, code = Span(begun, time.monotonic()), program.code
        if response is None:
            self._history.add(Submit(span, key, code, JobOutcome.UNKNOWN))
        elif response.status_code == 202:
            accepted = response.json()
            job_id: str = accepted["job_id"]
            self._history.add(Submit(span, key, code, JobOutcome.ACCEPTED, job_id))
            if accepted["status"] in _OPEN:
                self._history.add(Observation(span, job_id, Open(accepted["status"])))
            return job_id
        elif response.status_code == 409:
            self._history.add(Submit(span, key, code, JobOutcome.CONFLICT))
        else:
            self._history.add(Submit(span, key, code, JobOutcome.UNKNOWN))
            self._record_oddity(span, response)
        return None

    def observe(
        self, job_id: str, seconds: float = 0.0, server: Member | None = None
    ) -> View | None:
        """Observe one job, waiting up to so long for its end."""
        begun = time.monotonic()
        path = f"/v1/jobs/{job_id}?wait_seconds={seconds:.2f}"
        response = self._request("GET", path, None, server)
        if response is None:
            return None
        span = Span(begun, time.monotonic())
        view: View | None = None
        if response.status_code == 200:
            view = _answered(response.json())
        elif response.status_code == 202:
            view = Open(response.json()["status"])
        elif response.status_code == 503 and response.json()["kind"] != "store_error":
            view = Lost(response.json()["kind"])
        else:
            self._record_oddity(span, response)
        if view is not None:
            self._history.add(Observation(span, job_id, view))
        return view

    def wait_for_any(
        self, job_ids: Sequence[str], seconds: float, server: Member | None = None
    ) -> None:
        """Wait for the first of many jobs, and observe those that have ended."""
        begun = time.monotonic()
        body = {"job_ids": list(job_ids), "wait_seconds": seconds}
        response = self._request("POST", "/v1/jobs/wait", body, server)
        if response is None:
            return
        span = Span(begun, time.monotonic())
        if response.status_code != 200:
            self._record_oddity(span, response)
            return
        for one in response.json()["ended"]:
            answer, error = one["answer"], one["error"]
            view = Lost(error["kind"]) if answer is None else _answered(answer)
            self._history.add(Observation(span, one["job_id"], view))

    def cancel(self, key: str, job_id: str) -> None:
        self._history.add(Cancel(key))
        begun = time.monotonic()
        response = self._request("DELETE", f"/v1/jobs/{job_id}")
        if response is None:
            return
        span = Span(begun, time.monotonic())
        if response.status_code != 200:
            self._record_oddity(span, response)
        elif response.json()["status"] == "cancelled":
            self._history.add(Observation(span, job_id, Lost("cancelled")))

    def submit_batch(
        self,
        items: dict[str, Program],
        min_complete: int,
        *,
        cancels_rest: bool,
        server: Member | None = None,
    ) -> tuple[str, list[str]] | None:
        """Send a batch once and return its id and its jobs, if they are known now."""
        if cancels_rest:
            for key in items:
                self._history.add(Cancel(key))
        body = {
            "items": [_item(key, program) for key, program in items.items()],
            "min_complete": min_complete,
            "rest": "cancel" if cancels_rest else "continue",
        }
        begun = time.monotonic()
        response = self._request("POST", "/v1/batches", body, server)
        span, job_ids, outcome = Span(begun, time.monotonic()), [], JobOutcome.UNKNOWN
        if response is not None and response.status_code == 202:
            job_ids, outcome = response.json()["job_ids"], JobOutcome.ACCEPTED
        elif response is not None:
            self._record_oddity(span, response)
        for index, (key, program) in enumerate(items.items()):
            job_id = job_ids[index] if job_ids else None
            self._history.add(Submit(span, key, program.code, outcome, job_id))
        if response is None or not job_ids:
            return None
        return response.json()["batch_id"], job_ids

    def observe_batch(
        self, batch_id: str, job_ids: Sequence[str], min_complete: int, seconds: float
    ) -> dict[int, tuple[str, View]] | None:
        """Observe a batch, and return its items if it is complete."""
        begun = time.monotonic()
        response = self._request("GET", f"/v1/batches/{batch_id}?wait_seconds={seconds}")
        if response is None:
            return None
        span = Span(begun, time.monotonic())
        if response.status_code != 200:
            self._record_oddity(span, response)
            return None
        progress = response.json()
        views: dict[int, tuple[str, View]] = {}
        for one in progress["results"]:
            views[one["index"]] = one["job_id"], _answered(one)
        for one in progress["errors"]:
            views[one["index"]] = one["job_id"], Lost(one["error"]["kind"])
        for job_id, view in views.values():
            self._history.add(Observation(span, job_id, view))
        if not progress["complete"]:
            return None
        observed = BatchLook(span, batch_id, tuple(job_ids), min_complete, views)
        self._history.add(observed)
        return views

    def _request(
        self, method: str, path: str, body: object = None, server: Member | None = None
    ) -> httpx.Response | None:
        """Make a request; None when no answer came."""
        url = (server or self._rng.choice(self._servers)).url
        begun = time.monotonic()
        try:
            return self._http.request(method, url + path, json=body)
        except httpx.TimeoutException:
            span = Span(begun, time.monotonic())
            self._history.add(Oddity(span, f"{method} {path} got no reply in time"))
        except httpx.TransportError:
            time.sleep(0.2)
        return None

    def _record_oddity(self, span: Span, response: httpx.Response) -> None:
        """Record a reply unless it says when to retry."""
        if response.status_code in (429, 503) and "Retry-After" in response.headers:
            return
        request = response.request
        text = f"{request.method} {request.url.path}: {response.status_code} {response.text[:200]}"
        self._history.add(Oddity(span, text))


def _item(key: str, program: Program) -> dict[str, str]:
    return {"task_id": TASK, "code": program.code, "idempotency_key": key}


def _answered(answer: dict[str, Any]) -> Answered:
    return Answered(
        answer["status"],
        answer["reward"],
        answer["solution_id"],
        answer["attempt"],
        answer["stdout_tail"],
    )
