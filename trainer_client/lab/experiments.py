"""The three experiments: each takes one thing out of the whole method."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainer_client.lab.training import Terms

WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to train: the terms of the policy's updates, and whether programs are marked."""

    name: str
    terms: dict[str, float | bool] = field(default_factory=dict)
    instrument: str = "static"


@dataclass(frozen=True, slots=True)
class Experiment:
    """A comparison of the whole method with one arm, and what the paper found."""

    arm: str
    title: str
    measure: str
    paper: str


ARMS = (
    Arm(WHOLE),
    Arm("no durations", {"weighs_durations": False}),
    Arm("no partial credit", instrument="off"),
    Arm("no improvement", {"improve_fraction": 0.0}),
)
EXPERIMENTS = (
    Experiment(
        "no durations",
        "Duration-aware gradient",
        "mean_duration",
        "Without it execution time falls quickly and the agent settles on linear models; with it "
        "slower and better ones, such as boosting, are found (figures 2 and 8).",
    ),
    Experiment(
        "no partial credit",
        "Environment instrumentation",
        "mean_score",
        "With it the mean score grows and converges in fewer steps (figure 9).",
    ),
    Experiment(
        "no improvement",
        "Improving on previous solutions",
        "best_so_far",
        "With it the final score is higher on 10 of 12 tasks, by 8 % on average (table 4).",
    ),
)


def terms_of(arm: Arm, **changes: float | bool) -> Terms:
    """Return the terms of an arm; all arms have the same budget."""
    return Terms(**{**changes, **arm.terms})  # type: ignore[arg-type]
