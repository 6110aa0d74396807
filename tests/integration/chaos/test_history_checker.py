"""The checker itself: it passes a correct history, and reports every kind of violation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.integration.chaos.checker import check
from tests.integration.chaos.history import (
    Answered,
    BatchLook,
    Cancel,
    History,
    JobFact,
    JobFacts,
    JobOutcome,
    Lost,
    Observation,
    Oddity,
    Open,
    SolutionFact,
    Span,
    Submit,
)
from tests.integration.chaos.programs import FAILURES, crashing

if TYPE_CHECKING:
    from tests.integration.chaos.history import View

ANSWER = Answered("failed", -10.0, "s1", 2, "k1\n")
JOB = JobFact("j1", "k1", "failed", 2, None)
SOLUTION = SolutionFact("s1", "j1", "failed", 2, -10.0, "k1\n")
CANCELLED = JobFact("j2", "k2", "cancelled", 1, None)
ERRORED = JobFact("j3", "k3", "errored", 10, "worker_lost")
FACTS = JobFacts((JOB, CANCELLED, ERRORED), (SOLUTION,))


def submit(key: str, begun: float, outcome: JobOutcome, job: str | None = None) -> Submit:
    return Submit(Span(begun, begun + 1), key, key, outcome, job)


def look(job_id: str, begun: float, view: View) -> Observation:
    return Observation(Span(begun, begun + 1), job_id, view)


def good() -> History:
    """One job with an answer, one cancelled, one without a reward, and one never accepted."""
    views: dict[int, tuple[str, View]] = {0: ("j1", ANSWER), 1: ("j2", Lost("cancelled"))}
    return History(
        programs={f"k{n}": crashing(f"k{n}") for n in (1, 2, 3, 4)},
        oracle=dict(FAILURES),
        submits=[
            submit("k1", 0, JobOutcome.UNKNOWN),
            submit("k1", 2, JobOutcome.ACCEPTED, "j1"),
            submit("k2", 0, JobOutcome.ACCEPTED, "j2"),
            replace(submit("k2", 4, JobOutcome.CONFLICT), body="another"),
            submit("k3", 0, JobOutcome.ACCEPTED, "j3"),
            submit("k3", 14, JobOutcome.ACCEPTED, "j3"),
            submit("k4", 0, JobOutcome.UNKNOWN),
        ],
        looks=[
            look("j1", 4, Open("running")),
            look("j1", 6, ANSWER),
            look("j1", 8, ANSWER),
            look("j2", 6, Lost("cancelled")),
            look("j3", 12, Lost("worker_lost")),
            look("j3", 16, Open("running")),
        ],
        cancels=[Cancel("k2")],
        batches=[BatchLook(Span(8, 9), "b", ("j1", "j2"), 2, views)],
    )


def with_job(job: JobFact) -> JobFacts:
    others = tuple(one for one in FACTS.jobs if one.job_id != job.job_id)
    return JobFacts((*others, job), FACTS.solutions)


def with_solution(**changes: object) -> JobFacts:
    return JobFacts(FACTS.jobs, (replace(SOLUTION, **changes),))  # type: ignore[arg-type]


def test_a_correct_history_passes() -> None:
    assert check(good(), FACTS) == []


WRONG_FACTS = {
    "was acknowledged and is not there": JobFacts((JOB, CANCELLED), (SOLUTION,)),
    "has not ended, it is running": with_job(replace(ERRORED, state="running", error_kind=None)),
    "has not ended, it is queued": with_job(JobFact("j4", "k4", "queued", 1, None)),
    "key k4 has 2 jobs": JobFacts(
        (
            *FACTS.jobs,
            JobFact("j4", "k4", "errored", 1, "worker_lost"),
            JobFact("j5", "k4", "errored", 1, "worker_lost"),
        ),
        FACTS.solutions,
    ),
    "has a job that nobody sent": with_job(JobFact("j9", "k9", "errored", 1, "worker_lost")),
    "was answered with a job of key k4": with_job(replace(ERRORED, key="k4")),
    "is failed and has 0 results": JobFacts(FACTS.jobs, ()),
    "is failed and has 2 results": JobFacts(
        FACTS.jobs, (SOLUTION, replace(SOLUTION, solution_id="s2"))
    ),
    "is cancelled and has 1 results": JobFacts(
        FACTS.jobs, (SOLUTION, replace(SOLUTION, job_id="j2", stdout="k2\n"))
    ),
    "is errored and has 1 results": JobFacts(
        FACTS.jobs, (SOLUTION, replace(SOLUTION, job_id="j3", stdout="k3\n"))
    ),
    "there is a result of job j8": JobFacts(FACTS.jobs, (SOLUTION, replace(SOLUTION, job_id="j8"))),
    "its result is of attempt 1": with_solution(attempt=1),
    "is failed and its result scored": with_solution(status="scored"),
    "ended with nonzero_exit, which is no fault of ours": with_job(
        replace(ERRORED, error_kind="nonzero_exit")
    ),
    "ended with store_error": with_job(replace(ERRORED, error_kind="store_error")),
    "is cancelled, which nobody asked for": with_job(
        replace(ERRORED, state="cancelled", error_kind=None)
    ),
    "but crash earns -10.0": with_solution(reward=-9.9),
    "has the output of another": with_solution(stdout="k2\n"),
    "had several answers": with_solution(solution_id="s7"),
}


@pytest.mark.parametrize("complaint", WRONG_FACTS)
def test_an_impossible_database_state_is_reported(complaint: str) -> None:
    assert any(complaint in line for line in check(good(), WRONG_FACTS[complaint]))


OTHER = replace(ANSWER, reward=-9.0)
WRONG_HISTORIES = {
    "was answered with the jobs": lambda h: h.add(submit("k1", 5, JobOutcome.ACCEPTED, "j2")),
    "was accepted with two bodies": lambda h: h.add(
        replace(submit("k1", 5, JobOutcome.ACCEPTED, "j1"), body="another")
    ),
    "with no other body": lambda h: h.add(submit("k1", 5, JobOutcome.CONFLICT)),
    "was acknowledged and is not there": lambda h: h.add(
        submit("k4", 5, JobOutcome.ACCEPTED, "j4")
    ),
    "was seen and is not there": lambda h: h.add(look("j7", 5, Open("queued"))),
    "had several answers": lambda h: h.add(look("j1", 9, OTHER)),
    "had an answer and was then seen as Open": lambda h: h.add(look("j1", 9, Open("running"))),
    "had an answer and was then seen as Lost": lambda h: h.add(look("j1", 9, Lost("worker_lost"))),
    "was answered and has no result": lambda h: h.add(look("j3", 20, ANSWER)),
    "without a reward and was then seen as Open": lambda h: h.add(look("j2", 9, Open("queued"))),
    "without a reward and was then seen as Answered": lambda h: h.add(look("j2", 9, ANSWER)),
    "was said to have ended with store_error": lambda h: h.add(look("j3", 12, Lost("store_error"))),
    "was said to be cancelled, which nobody asked for": lambda h: h.add(
        look("j3", 12, Lost("cancelled"))
    ),
    "was called complete with 1 answers": lambda h: h.add(
        BatchLook(Span(8, 9), "b", ("j1", "j2", "j3"), 2, {0: ("j1", ANSWER)})
    ),
    "reported an open job": lambda h: h.add(
        BatchLook(Span(8, 9), "b", ("j1",), 1, {0: ("j1", Open("running"))})
    ),
    "has job j2 at place 0": lambda h: h.add(
        BatchLook(Span(8, 9), "b", ("j1",), 1, {0: ("j2", ANSWER)})
    ),
    "a 500": lambda h: h.add(Oddity(Span(0, 1), "a 500")),
}


@pytest.mark.parametrize("complaint", WRONG_HISTORIES)
def test_an_impossible_observation_is_reported(complaint: str) -> None:
    history = good()
    WRONG_HISTORIES[complaint](history)
    assert any(complaint in line for line in check(history, FACTS))


def test_an_overlapping_observation_may_show_the_job_as_open() -> None:
    history = good()
    history.add(Observation(Span(5, 30), "j1", Open("running")))
    assert check(history, FACTS) == []


def test_an_unanswered_request_may_run_a_cancelled_job_again() -> None:
    history = good()
    history.add(submit("k2", 1, JobOutcome.UNKNOWN))
    history.add(look("j2", 9, Open("queued")))
    assert check(history, FACTS) == []
