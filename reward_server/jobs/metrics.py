"""Metrics in Prometheus' format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from reward_server.jobs.admission import Admission
    from reward_server.jobs.workers.worker import Worker
    from reward_server.store.values import StoredAnswer

_SECONDS = (0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14_400)


class Metrics:
    """Counts what this process runs; the queue's numbers are the whole database's."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._ended = Counter(
            "reward_jobs_ended", "Jobs this process has run.", ["task", "status"],
            registry=self.registry,
        )  # fmt: skip
        self._programs = Counter(
            "reward_run_code_ended", "Ad hoc programs this process has run.", ["status"],
            registry=self.registry,
        )  # fmt: skip
        self._programs_running = self._gauge(
            "reward_run_code_running", "Ad hoc programs in a slot or next."
        )
        self._programs_waiting = self._gauge(
            "reward_run_code_waiting", "Ad hoc programs that wait."
        )
        self._waited = self._histogram(
            "reward_job_queue_seconds", "Seconds a job waits before it starts."
        )
        self._ran = self._histogram("reward_job_duration_seconds", "Seconds a program runs.")
        self._queued = self._gauge("reward_jobs_queued", "Jobs that wait, in the whole database.")
        self._running = self._gauge(
            "reward_jobs_running", "Jobs leased to workers, in the whole database."
        )
        self._oldest = self._gauge(
            "reward_jobs_oldest_seconds", "Seconds the oldest waiting job has waited."
        )
        self._slots = self._gauge("reward_slots", "Programs this process can run at once.")
        self._busy = self._gauge("reward_slots_busy", "Slots of this process in use.")

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, buckets=_SECONDS, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)

    def record_answer(self, answer: StoredAnswer) -> None:
        """Count a job that has a reward."""
        status = answer.status.value if answer.failure is None else answer.failure.kind.value
        self._ended.labels(answer.submission.task_id, status).inc()
        self._waited.observe(answer.timings.queue)
        self._ran.observe(answer.execution.duration_seconds)

    def record_error(self, task_id: str, kind: str) -> None:
        """Count an attempt that ended without a reward."""
        self._ended.labels(task_id, kind).inc()

    def record_program(self, status: str) -> None:
        """Count an ad hoc program by its result, or by the error that prevented one."""
        self._programs.labels(status).inc()

    def set_waiting_programs(self, count: int) -> None:
        """Set how many ad hoc programs wait for a slot."""
        self._programs_waiting.set(count)

    def show(self, admission: Admission | None, worker: Worker | None) -> bytes:
        """Return all metrics as Prometheus reads them."""
        state = None if admission is None else admission.state
        if state is not None:
            self._queued.set(state.queued)
            self._running.set(state.running)
            self._oldest.set(state.oldest_seconds)
        if worker is not None:
            self._slots.set(worker.config.slots)
            self._busy.set(min(worker.busy + worker.programs, worker.config.slots))
            self._programs_running.set(worker.programs)
        return generate_latest(self.registry)
