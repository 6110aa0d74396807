"""What clients requested, what they observed, and what the database holds in the end.

A request without a reply, or with a 503 or 429, may have had its effect or not.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.integration.chaos.programs import Expected, Program


class JobOutcome(Enum):
    """How a submission ended for its client."""

    ACCEPTED = "accepted"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Span:
    """When a request was sent, and when its reply came or the client gave up."""

    begun: float
    ended: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A job that has a reward, as a client saw it."""

    status: str
    reward: float
    solution_id: str
    attempt: int
    stdout: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A job that ended without a reward, as a client saw it."""

    kind: str


@dataclass(frozen=True, slots=True)
class Open:
    """A job that waits or runs, as a client saw it."""

    status: str


View = Answered | Lost | Open


@dataclass(frozen=True, slots=True)
class Submit:
    """A client sent a body with a key, by itself or in a batch."""

    span: Span
    key: str
    body: str
    outcome: JobOutcome
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A client observed the state of a job."""

    span: Span
    job_id: str
    view: View


@dataclass(frozen=True, slots=True)
class Cancel:
    """A client cancelled the job of a key, or may have, by a batch that cancels its rest."""

    key: str


@dataclass(frozen=True, slots=True)
class BatchLook:
    """A client observed that a batch is complete."""

    span: Span
    batch_id: str
    job_ids: tuple[str, ...]
    min_complete: int
    views: Mapping[int, tuple[str, View]]


@dataclass(frozen=True, slots=True)
class Oddity:
    """A reply that no request may get, such as a 500, or a 503 without a retry time."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class JobFact:
    """A job in the database."""

    job_id: str
    key: str | None
    state: str
    attempt: int
    error_kind: str | None


@dataclass(frozen=True, slots=True)
class SolutionFact:
    """A result in the database."""

    solution_id: str
    job_id: str
    status: str
    attempt: int
    reward: float
    stdout: str


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What the database holds at the end."""

    jobs: tuple[JobFact, ...]
    solutions: tuple[SolutionFact, ...]


@dataclass
class History:
    """All requests of one run, and what the programs of their keys must earn."""

    programs: dict[str, Program] = field(default_factory=dict)
    oracle: dict[str, Expected] = field(default_factory=dict)
    submits: list[Submit] = field(default_factory=list)
    looks: list[Observation] = field(default_factory=list)
    cancels: list[Cancel] = field(default_factory=list)
    batches: list[BatchLook] = field(default_factory=list)
    oddities: list[Oddity] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, event: Submit | Observation | Cancel | BatchLook | Oddity) -> None:
        """Record an event; the order of the lists means nothing."""
        with self._lock:
            match event:
                case Submit():
                    self.submits.append(event)
                case Observation():
                    self.looks.append(event)
                case Cancel():
                    self.cancels.append(event)
                case BatchLook():
                    self.batches.append(event)
                case Oddity():
                    self.oddities.append(event)

    def acknowledged(self) -> dict[str, str]:
        """Return the keys of the jobs whose ids a client has received."""
        with self._lock:
            return {one.job_id: one.key for one in self.submits if one.job_id is not None}
