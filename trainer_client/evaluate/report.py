"""The report of an evaluation: each task's statistics and the paper's, as one JSON object."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trainer_client.evaluate.evaluation import unfinished
from trainer_client.evaluate.paper import published
from trainer_client.evaluate.plan import KINDS, SampleSlot
from trainer_client.evaluate.statistics import better, estimates, numbers, rank

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainer_client.evaluate.evaluation import Lost
    from trainer_client.evaluate.folder import DataFacts, EvaluationRun
    from trainer_client.evaluate.plan import EvaluationPlan, Kind
    from trainer_client.evaluate.samples import SampleJournal
    from trainer_client.evaluate.statistics import Numbers, Scored

Report = dict[str, Any]
BOTH = "best_of_both"
TWIN = "twin data: not comparable with the paper"
UNKNOWN = "a task that the paper does not have"
FEWER = "{samples} samples: the paper's best are among 128"


def make_report(run: EvaluationRun, journal: SampleJournal, lost: Lost) -> Report:
    """Sum up all samples there are, whether or not some are missing."""
    missing = Counter(slot.task_id for slot in unfinished(run.plan, journal))
    return {
        "run_id": run.plan.run_id,
        "model": run.plan.model,
        "complete": not missing,
        "plan": asdict(run.plan),
        "versions": dict(run.versions),
        "tasks": [
            _task(run.plan, task_id, run.tasks[task_id], journal)
            | {"unfinished": missing[task_id], "lost": _reasons(lost, task_id)}
            for task_id in run.plan.tasks
        ],
    }


def _task(plan: EvaluationPlan, task_id: str, facts: DataFacts, journal: SampleJournal) -> Report:
    by_seed = [_seed(plan, task_id, seed, facts, journal) for seed in range(plan.seeds)]
    over_seeds = {part: estimates(one[part] for one in by_seed) for part in by_seed[0]}
    headline = over_seeds[BOTH if plan.improve else "scratch"]["best_score"]
    skipped = Counter(why for slot, why in journal.skipped.items() if slot.task_id == task_id)
    return {
        "task_id": task_id,
        "metric": facts.metric,
        "higher_is_better": facts.higher_is_better,
        "data_digest": facts.data_digest,
        "source": facts.source,
        "best_score": None if headline is None else asdict(headline),
        **{part: _plain(figures) for part, figures in over_seeds.items()},
        "seeds": [{part: asdict(figures) for part, figures in one.items()} for one in by_seed],
        "not_improved_on": dict(skipped),
        "errors": _errors(task_id, journal),
    } | _comparison(plan, task_id, facts, None if headline is None else headline.mean)


def _seed(
    plan: EvaluationPlan, task_id: str, seed: int, facts: DataFacts, journal: SampleJournal
) -> dict[str, Numbers]:
    """Return the figures of a seed: from scratch, improving, and the better of each two."""
    higher = facts.higher_is_better
    slots_of = {kind: _slots(plan, task_id, seed, kind) for kind in KINDS}
    found = {
        kind: [journal.samples[slot] for slot in slots if slot in journal.samples]
        for kind, slots in slots_of.items()
    }
    figures = {"scratch": numbers(found["scratch"], higher_is_better=higher)}
    if not plan.improve:
        return figures
    pairs: Sequence[Scored] = [
        better(
            journal.samples[slot], journal.samples.get(slot.improving()), higher_is_better=higher
        )
        for slot in slots_of["scratch"]
        if slot in journal.samples
    ]
    return figures | {
        "improve": numbers(found["improve"], higher_is_better=higher),
        BOTH: numbers(pairs, higher_is_better=higher),
    }


def _slots(plan: EvaluationPlan, task_id: str, seed: int, kind: Kind) -> list[SampleSlot]:
    return [SampleSlot(task_id, seed, kind, index) for index in range(plan.samples)]


def _comparison(plan: EvaluationPlan, task_id: str, facts: DataFacts, ours: float | None) -> Report:
    """Return the paper's figures, our rank among them where there is one, and what to mind."""
    others = published(task_id)
    is_twin = facts.source == "twin"
    notes = [TWIN] if is_twin else []
    notes += [] if others else [UNKNOWN]
    notes += [FEWER.format(samples=plan.samples)] if plan.samples != 128 else []
    ranking = None
    if ours is not None and others and not is_twin:
        ranking = rank(ours, others, higher_is_better=facts.higher_is_better)
    return {
        "notes": notes,
        "rank": None if ranking is None else asdict(ranking),
        "paper": [asdict(one) for one in others],
    }


def _errors(task_id: str, journal: SampleJournal) -> Report:
    mine = [one for one in journal.samples.values() if one.task_id == task_id]
    return {
        kind: dict(Counter(one.error_kind for one in mine if one.kind == kind and one.error_kind))
        for kind in KINDS
    }


def _reasons(lost: Lost, task_id: str) -> dict[str, int]:
    return {reason: count for (task, reason), count in lost.items() if task == task_id}


def _plain(figures: Mapping[str, Any]) -> Report:
    return {name: None if one is None else asdict(one) for name, one in figures.items()}
