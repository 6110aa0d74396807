"""The three experiments. Each leaves out one part of the method and checks a claim of the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainer_client.lab.training import LabConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer_client.lab.records import Record

_LATE_STEPS = 5
_GOOD = 0.9


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to train: settings of the policy's updates, and the instrumenter."""

    name: str
    config: dict[str, float | bool] = field(default_factory=dict)
    instrument: str = "static"


@dataclass(frozen=True, slots=True)
class ExperimentClaim:
    """A measure that should be higher, or lower, with the part of the method than without it."""

    text: str
    measure: Callable[[Record], float]
    is_higher: bool = True
    unit: str = ""

    def holds(self, mine: float, other: float) -> bool:
        """Tell whether two means are as claimed. A missing mean (NaN) never is."""
        return mine > other if self.is_higher else mine < other


@dataclass(frozen=True, slots=True)
class Experiment:
    """A comparison of two arms that differ in one part of the method."""

    name: str
    title: str
    with_it: str
    without_it: str
    pictures: tuple[str, ...]
    paper: str
    setting: str
    claims: tuple[ExperimentClaim, ...]
    remark: Callable[[Sequence[Record], Sequence[Record]], str] = lambda *_: ""


def _course_of_time(with_it: Sequence[Record], _: Sequence[Record]) -> str:
    count = len(with_it)
    series = [one.series("mean_duration") for one in with_it]
    first, last = (sum(one[position] for one in series) / count for position in (0, -1))
    moved = "rises, where theirs still fell" if last > first else "falls, as theirs did"
    return f"With the weights time {moved}: from {first:.1f} s in the first step to {last:.1f} s."


def _runs_that_learn(with_it: Sequence[Record], without_it: Sequence[Record]) -> str:
    found = [sum(max(one.series("valid")) >= _GOOD for one in arm) for arm in (with_it, without_it)]
    return (
        f"{_GOOD:.0%} valid is reached by {found[0]} of {len(with_it)} runs with partial credit "
        f"and by {found[1]} of {len(without_it)} without it."
    )


WHOLE = Arm("whole method")
NO_IMPROVEMENT = Arm("no improvement", {"improve_fraction": 0.0})
# Without improve prompts, only the policy carries information between steps. Otherwise a policy
# that has settled on a fast family would get back the slow programs that it once wrote.
NO_DURATIONS = Arm(
    "no improvement, no duration weights", {"improve_fraction": 0.0, "weighs_durations": False}
)
# Partial credit matters where hardly any program is valid. The few that get far are the slowest,
# and the first B of m·B samples would contain none of them. So these arms wait for all samples.
_NOTHING = {"is_informed": False, "multiplier": 1.0, "improve_fraction": 0.0}
FROM_NOTHING = Arm("from nothing", _NOTHING)
NO_CREDIT = Arm("from nothing, no partial credit", _NOTHING, instrument="off")
ARMS = (WHOLE, NO_IMPROVEMENT, NO_DURATIONS, FROM_NOTHING, NO_CREDIT)

_STEPS_UNTIL_VALID = ExperimentClaim(
    "steps until 90 % are valid (never: one more than all)",
    lambda run: run.steps_until("valid", _GOOD),
    is_higher=False,
)
EXPERIMENTS = (
    Experiment(
        "durations",
        "Duration-aware gradient",
        NO_IMPROVEMENT.name,
        NO_DURATIONS.name,
        ("mean_duration", "slow", "best_score"),
        "Without it the execution time collapses within a few steps and the policy settles on fast "
        "linear models; with it slower and better ones, such as gradient boosting, are found. Time "
        "still tends to fall (figures 2 and 8).",
        "Neither arm improves on previous solutions, so that nothing but the policy remembers.",
        (
            ExperimentClaim(
                "execution time at the end of training",
                lambda run: run.late("mean_duration", _LATE_STEPS),
                unit=" s",
            ),
            ExperimentClaim(
                "share of slow, better families at the end",
                lambda run: run.late("slow", _LATE_STEPS),
            ),
            ExperimentClaim("mean score of final programs", lambda run: run.written("mean_score")),
            ExperimentClaim("best score of final programs", lambda run: run.written("best")),
        ),
        _course_of_time,
    ),
    Experiment(
        "credit",
        "Environment instrumentation",
        FROM_NOTHING.name,
        NO_CREDIT.name,
        ("mean_score", "valid", "mean_reward"),
        "With it the mean score grows and converges in fewer steps; without it some runs never "
        "find a valid program (figure 9).",
        "Both arms start where one program in a thousand is valid, wait for all programs of a step "
        "(m = 1), and do not improve on previous solutions.",
        (
            ExperimentClaim(
                "mean score over all steps", lambda run: run.late("mean_score", len(run.steps))
            ),
            ExperimentClaim(
                "mean score at the end", lambda run: run.late("mean_score", _LATE_STEPS)
            ),
            _STEPS_UNTIL_VALID,
            ExperimentClaim("valid final programs", lambda run: run.written("valid")),
        ),
        _runs_that_learn,
    ),
    Experiment(
        "improvement",
        "Improving on previous solutions",
        WHOLE.name,
        NO_IMPROVEMENT.name,
        ("best_so_far", "best_score", "mean_score"),
        "With it the final best is higher on 10 of 12 tasks, by 8 % on average (table 4).",
        "With it half of the prompts ask to improve on one of the run's best eight programs.",
        (
            ExperimentClaim("best score of final programs", lambda run: run.best),
            ExperimentClaim(
                "best score seen in training", lambda run: run.series("best_so_far")[-1]
            ),
            _STEPS_UNTIL_VALID,
        ),
    ),
)


def config_of(arm: Arm, **changes: float | bool) -> LabConfig:
    """Return the configuration of an arm; all arms have the same budget."""
    return LabConfig(**{**changes, **arm.config})  # type: ignore[arg-type]
