"""A client that keeps a history: it sends, looks, waits and cancels through any server."""

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

    from tests.integration.chaos.cluster import Member
    from tests.integration.chaos.history import History, View
    from tests.integration.chaos.programs import Program

_TIMEOUT_SECONDS = 100.0  # longer than any statement may take, so that a hang is seen as one
_OPEN = ("queued", "running")


class Client:
    """Makes requests through servers drawn by lot, and writes down what came of them."""

    def __init__(self, servers: Sequence[Member], history: History, lot: random.Random) -> None:
        self._servers = servers
        self._history = history
        self._lot = lot
        self._http = httpx.Client(timeout=_TIMEOUT_SECONDS)

    def close(self) -> None:
        self._http.close()

    def submit(self, key: str, program: Program, server: Member | None = None) -> str | None:
        """Send a program once and return its job, if that is known now."""
        begun = time.monotonic()
        response = self._ask("POST", "/v1/jobs", _item(key, program), server)
        span, code = Span(begun, time.monotonic()), program.code
        if response is None:
            self._history.add(Submit(span, key, code, JobOutcome.UNKNOWN))
        elif response.status_code == 202:
            told = response.json()
            job_id: str = told["job_id"]
            self._history.add(Submit(span, key, code, JobOutcome.ACCEPTED, job_id))
            if told["status"] in _OPEN:
                self._history.add(Observation(span, job_id, Open(told["status"])))
            return job_id
        elif response.status_code == 409:
            self._history.add(Submit(span, key, code, JobOutcome.CONFLICT))
        else:
            self._history.add(Submit(span, key, code, JobOutcome.UNKNOWN))
            self._note_odd(span, response)
        return None

    def look(self, job_id: str, seconds: float = 0.0, server: Member | None = None) -> View | None:
        """Look at one job, waiting up to so long for its end."""
        begun = time.monotonic()
        path = f"/v1/jobs/{job_id}?wait_seconds={seconds:.2f}"
        response = self._ask("GET", path, None, server)
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
            self._note_odd(span, response)
        if view is not None:
            self._history.add(Observation(span, job_id, view))
        return view

    def wait_for_any(
        self, job_ids: Sequence[str], seconds: float, server: Member | None = None
    ) -> None:
        """Look at many jobs at once."""
        begun = time.monotonic()
        body = {"job_ids": list(job_ids), "wait_seconds": seconds}
        response = self._ask("POST", "/v1/jobs/wait", body, server)
        if response is None:
            return
        span = Span(begun, time.monotonic())
        if response.status_code != 200:
            self._note_odd(span, response)
            return
        for one in response.json()["ended"]:
            answer, error = one["answer"], one["error"]
            view = Lost(error["kind"]) if answer is None else _answered(answer)
            self._history.add(Observation(span, one["job_id"], view))

    def cancel(self, key: str, job_id: str) -> None:
        self._history.add(Cancel(key))
        begun = time.monotonic()
        response = self._ask("DELETE", f"/v1/jobs/{job_id}")
        if response is None:
            return
        span = Span(begun, time.monotonic())
        if response.status_code != 200:
            self._note_odd(span, response)
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
        response = self._ask("POST", "/v1/batches", body, server)
        span, job_ids, outcome = Span(begun, time.monotonic()), [], JobOutcome.UNKNOWN
        if response is not None and response.status_code == 202:
            job_ids, outcome = response.json()["job_ids"], JobOutcome.ACCEPTED
        elif response is not None:
            self._note_odd(span, response)
        for index, (key, program) in enumerate(items.items()):
            job_id = job_ids[index] if job_ids else None
            self._history.add(Submit(span, key, program.code, outcome, job_id))
        if response is None or not job_ids:
            return None
        return response.json()["batch_id"], job_ids

    def look_at_batch(
        self, batch_id: str, job_ids: Sequence[str], min_complete: int, seconds: float
    ) -> dict[int, tuple[str, View]] | None:
        """Look at a batch and return what is known of it, once it is complete."""
        begun = time.monotonic()
        response = self._ask("GET", f"/v1/batches/{batch_id}?wait_seconds={seconds}")
        if response is None:
            return None
        span = Span(begun, time.monotonic())
        if response.status_code != 200:
            self._note_odd(span, response)
            return None
        told = response.json()
        views: dict[int, tuple[str, View]] = {}
        for one in told["results"]:
            views[one["index"]] = one["job_id"], _answered(one)
        for one in told["errors"]:
            views[one["index"]] = one["job_id"], Lost(one["error"]["kind"])
        for job_id, view in views.values():
            self._history.add(Observation(span, job_id, view))
        if not told["complete"]:
            return None
        look = BatchLook(span, batch_id, tuple(job_ids), min_complete, views)
        self._history.add(look)
        return views

    def _ask(
        self, method: str, path: str, body: object = None, server: Member | None = None
    ) -> httpx.Response | None:
        """Make a request; None when no answer came."""
        url = (server or self._lot.choice(self._servers)).url
        begun = time.monotonic()
        try:
            return self._http.request(method, url + path, json=body)
        except httpx.TimeoutException:
            span = Span(begun, time.monotonic())
            self._history.add(Oddity(span, f"{method} {path} was not answered in time"))
        except httpx.TransportError:
            time.sleep(0.2)
        return None

    def _note_odd(self, span: Span, response: httpx.Response) -> None:
        """Remember an answer unless it is one that tells a client to come back later."""
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
