"""Numbers for whoever watches the server, in Prometheus' format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from reward_server.jobs.admission import Admission
    from reward_server.jobs.workers.worker import Worker
    from reward_server.store.values import StoredAnswer

_SECONDS = (0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14_400)


class Metrics:
    """Counts what this process has run; the queue is the whole database's."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._ended = Counter(
            "reward_jobs_ended", "Jobs this process has run.", ["task", "status"],
            registry=self.registry,
        )  # fmt: skip
        self._errands = Counter(
            "reward_run_code_ended", "Bare programs this process has run.", ["status"],
            registry=self.registry,
        )  # fmt: skip
        self._errands_held = self._gauge(
            "reward_run_code_running", "Bare programs that have a place or are next."
        )
        self._errands_waiting = self._gauge("reward_run_code_waiting", "Bare programs that wait.")
        self._waited = self._histogram("reward_job_queue_seconds", "Waiting before the start.")
        self._ran = self._histogram("reward_job_duration_seconds", "Programs' durations.")
        self._queued = self._gauge("reward_jobs_queued", "Jobs that wait, in all.")
        self._running = self._gauge("reward_jobs_running", "Jobs that are lent out, in all.")
        self._oldest = self._gauge("reward_jobs_oldest_seconds", "What waits longest, so far.")
        self._slots = self._gauge("reward_slots", "Programs this process can run at once.")
        self._busy = self._gauge("reward_slots_busy", "Slots of this process that are in use.")

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, buckets=_SECONDS, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)

    def ended(self, answer: StoredAnswer) -> None:
        """Count a job that has a reward."""
        status = answer.status.value if answer.failure is None else answer.failure.kind.value
        self._ended.labels(answer.submission.task_id, status).inc()
        self._waited.observe(answer.timings.queue)
        self._ran.observe(answer.execution.duration_seconds)

    def errored(self, task_id: str, kind: str) -> None:
        """Count an attempt that ended without a reward."""
        self._ended.labels(task_id, kind).inc()

    def ran_errand(self, status: str) -> None:
        """Count the end of a bare program, or why it did not come to that."""
        self._errands.labels(status).inc()

    def errands_wait(self, count: int) -> None:
        """Note how many bare programs wait for their turn."""
        self._errands_waiting.set(count)

    def show(self, admission: Admission | None, worker: Worker | None) -> bytes:
        """Return all numbers as they are now."""
        state = None if admission is None else admission.state
        if state is not None:
            self._queued.set(state.queued)
            self._running.set(state.running)
            self._oldest.set(state.oldest_seconds)
        if worker is not None:
            self._slots.set(worker.terms.slots)
            self._busy.set(min(worker.busy + worker.errands, worker.terms.slots))
            self._errands_held.set(worker.errands)
        return generate_latest(self.registry)
