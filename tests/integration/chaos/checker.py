"""What must hold for a history, whatever happened to servers, workers and Postgres."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tests.integration.chaos.history import Answered, JobOutcome, Lost, Open

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.integration.chaos.history import (
        History,
        JobFact,
        JobFacts,
        Observation,
        SolutionFact,
        Submit,
    )

_WITH_ANSWER = ("scored", "failed")
_WITHOUT = ("errored", "cancelled")
# A database that does not answer does not end a job.
_ENDINGS = ("sandbox_unavailable", "sandbox_lost", "worker_lost", "cancelled")


def check(history: History, facts: JobFacts) -> list[str]:
    """Return every violation of the guarantees of durable jobs."""
    return [
        *_lost_jobs(history, facts),
        *_keys(history, facts),
        *_results(facts),
        *_endings(history, facts),
        *_views(history, facts),
        *_rewards(history, facts),
        *_batches(history),
        *(oddity.text for oddity in history.oddities),
    ]


def _lost_jobs(history: History, facts: JobFacts) -> Iterator[str]:
    states = {job.job_id: job.state for job in facts.jobs}
    for job_id in history.acknowledged():
        if job_id not in states:
            yield f"job {job_id} was acknowledged and is not there"
    for job_id, state in states.items():
        if state not in (*_WITH_ANSWER, *_WITHOUT):
            yield f"job {job_id} has not ended, it is {state}"


def _keys(history: History, facts: JobFacts) -> Iterator[str]:
    by_key: defaultdict[str, list[Submit]] = defaultdict(list)
    for submit in history.submits:
        by_key[submit.key].append(submit)
    stored = Counter(job.key for job in facts.jobs if job.key is not None)
    for key, count in stored.items():
        if count > 1:
            yield f"key {key} has {count} jobs"
        if key not in by_key:
            yield f"key {key} has a job that nobody sent"
    keys = {job.job_id: job.key for job in facts.jobs}
    for key, submits in by_key.items():
        yield from _one_key(key, submits, keys)


def _one_key(key: str, submits: Sequence[Submit], keys: dict[str, str | None]) -> Iterator[str]:
    accepted = [one for one in submits if one.outcome is JobOutcome.ACCEPTED]
    ids = {one.job_id for one in accepted}
    if len(ids) > 1:
        yield f"key {key} was answered with the jobs {sorted(map(str, ids))}"
    for job_id in ids:
        if keys.get(str(job_id), key) != key:
            yield f"key {key} was answered with a job of key {keys[str(job_id)]}"
    if len({one.body for one in accepted}) > 1:
        yield f"key {key} was accepted with two bodies"
    for one in submits:
        others = any(
            other.body != one.body and other.span.begun <= one.span.ended for other in submits
        )
        if one.outcome is JobOutcome.CONFLICT and not others:
            yield f"key {key} was refused as a conflict without another body"


def _results(facts: JobFacts) -> Iterator[str]:
    by_job: defaultdict[str, list[SolutionFact]] = defaultdict(list)
    for solution in facts.solutions:
        by_job[solution.job_id].append(solution)
    for job in facts.jobs:
        found = by_job.pop(job.job_id, [])
        wanted = 1 if job.state in _WITH_ANSWER else 0
        if len(found) != wanted:
            yield f"job {job.job_id} is {job.state} and has {len(found)} results"
        for solution in found:
            if wanted and solution.attempt != job.attempt:
                yield (
                    f"job {job.job_id} is at attempt {job.attempt}"
                    f" and its result is of attempt {solution.attempt}"
                )
            if wanted and solution.status != job.state:
                yield f"job {job.job_id} is {job.state} and its result {solution.status}"
    for job_id in by_job:
        yield f"there is a result of job {job_id}, which is not there"


def _endings(history: History, facts: JobFacts) -> Iterator[str]:
    keys = {cancel.key for cancel in history.cancels}
    cancelled = {job.job_id for job in facts.jobs if job.key in keys}
    for job in facts.jobs:
        if job.state == "errored" and job.error_kind not in _ENDINGS:
            yield f"job {job.job_id} ended with {job.error_kind}, not an infrastructure error"
        if job.state == "cancelled" and job.job_id not in cancelled:
            yield f"job {job.job_id} is cancelled, though no client cancelled it"
    for look in history.looks:
        if not isinstance(look.view, Lost):
            continue
        if look.view.kind not in _ENDINGS:
            yield f"job {look.job_id} was said to have ended with {look.view.kind}"
        if look.view.kind == "cancelled" and look.job_id not in cancelled:
            yield f"job {look.job_id} was said to be cancelled, though no client cancelled it"


def _views(history: History, facts: JobFacts) -> Iterator[str]:
    by_job: defaultdict[str, list[Observation]] = defaultdict(list)
    for look in history.looks:
        by_job[look.job_id].append(look)
    submits: defaultdict[str, list[Submit]] = defaultdict(list)
    for submit in history.submits:
        submits[submit.key].append(submit)
    jobs = {job.job_id: job for job in facts.jobs}
    stored = {solution.job_id: solution for solution in facts.solutions}
    for job_id, looks in by_job.items():
        job = jobs.get(job_id)
        if job is None:
            yield f"job {job_id} was seen and is not there"
            continue
        yield from _same_answer(job, looks, stored.get(job_id))
        yield from _no_way_back(job, looks, submits[job.key or ""])


def _same_answer(
    job: JobFact, looks: Sequence[Observation], stored: SolutionFact | None
) -> Iterator[str]:
    answers = {look.view for look in looks if isinstance(look.view, Answered)}
    if stored is not None:
        answers.add(
            Answered(
                stored.status, stored.reward, stored.solution_id, stored.attempt, stored.stdout
            )
        )
    elif answers:
        yield f"job {job.job_id} was answered and has no result"
    if len(answers) > 1:
        yield f"job {job.job_id} had several answers: {sorted(map(str, answers))}"


def _no_way_back(
    job: JobFact, looks: Sequence[Observation], submits: Sequence[Submit]
) -> Iterator[str]:
    """Yield what was observed after an end; a job without a reward may run again if resent."""
    answered = min(
        (look.span.ended for look in looks if isinstance(look.view, Answered)), default=math.inf
    )
    lost = [look for look in looks if isinstance(look.view, Lost)]
    for look in looks:
        if isinstance(look.view, Answered):
            continue
        if look.span.begun > answered:
            yield f"job {job.job_id} had an answer and was then seen as {look.view}"
    for look in looks:
        if isinstance(look.view, Lost):
            continue
        before = max(
            (one.span.begun for one in lost if one.span.ended < look.span.begun), default=None
        )
        if before is not None and not _may_be_resent(submits, before, look.span.ended):
            yield f"job {job.job_id} had ended without a reward and was then seen as {look.view}"


def _may_be_resent(submits: Sequence[Submit], since: float, until: float) -> bool:
    """Return whether a submission may have taken effect in a time; an unanswered one at any."""
    return any(
        one.span.begun <= until and (one.outcome is JobOutcome.UNKNOWN or one.span.ended >= since)
        for one in submits
    )


def _rewards(history: History, facts: JobFacts) -> Iterator[str]:
    keys = {job.job_id: job.key for job in facts.jobs}
    for solution in facts.solutions:
        program = history.programs.get(keys.get(solution.job_id) or "")
        if program is None:
            continue
        expected = history.oracle[program.kind]
        if (solution.status, solution.reward) != (expected.status, expected.reward):
            yield (
                f"job {solution.job_id} earned {solution.reward} ({solution.status}),"
                f" but {program.kind} earns {expected.reward} ({expected.status})"
            )
        if solution.stdout.strip() != program.mark:
            yield f"job {solution.job_id} has the output of another: {solution.stdout!r}"


def _batches(history: History) -> Iterator[str]:
    for batch in history.batches:
        answered = sum(isinstance(view, Answered) for _, view in batch.views.values())
        if answered < batch.min_complete and len(batch.views) < len(batch.job_ids):
            yield f"batch {batch.batch_id} was called complete with {answered} answers"
        for index, (job_id, view) in batch.views.items():
            if isinstance(view, Open):
                yield f"batch {batch.batch_id} reported an open job"
            if job_id != batch.job_ids[index]:
                yield f"batch {batch.batch_id} has job {job_id} at index {index}"


def count_endings(facts: JobFacts) -> Counter[str]:
    """Return how many jobs ended how."""
    return Counter(
        job.state if job.error_kind is None else f"errored: {job.error_kind}" for job in facts.jobs
    )
