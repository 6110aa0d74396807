"""The report: a picture, a table and a verdict for each experiment, beside what the paper found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from jinja2 import Environment, PackageLoader
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator

from trainer_client.lab.experiments import EXPERIMENTS, WHOLE
from trainer_client.lab.program_space import TASK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from trainer_client.lab.experiments import Experiment, ExperimentClaim
    from trainer_client.lab.records import Record, RunRecords

mpl.use("Agg")  # a window system is not needed
_COLOURS = ("#1f6feb", "#d1632a")
_LABELS = {
    "mean_duration": "mean execution time of the samples\ntrained on, seconds",
    "mean_score": "mean score\n(-10 where invalid)",
    "mean_reward": "mean reward\n(with partial credit)",
    "best_score": "best score of each step\n(AUC, higher is better)",
    "best_so_far": "best score so far\n(AUC, higher is better)",
    "slow": "share of the slow, better families\namong all samples",
    "valid": "share of valid programs",
}
_ERRORS = 2
_SAID = {
    "yes": "As in the paper",
    "weakly": "In the paper's direction, not shown to be more than chance",
    "no": "Not as in the paper",
}
_TEMPLATES = Environment(loader=PackageLoader(__package__, "."), autoescape=True, trim_blocks=True)


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over seeds, with its standard error."""

    mean: float
    error: float
    seeds: int

    def __str__(self) -> str:
        if not self.seeds:
            return "none"
        digits = 1 if abs(self.mean) >= 1 else 3
        error = f" ± {self.error:.{digits}f}" if self.seeds > 1 else ""
        return f"{self.mean:.{digits}f}{error}"


def figure_of(numbers: Sequence[float]) -> Figure:
    """Return the mean of what is there and its standard error; of one number there is no error."""
    found = np.asarray([number for number in numbers if not math.isnan(number)])
    if not len(found):
        return Figure(math.nan, math.nan, 0)
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
    return Figure(float(found.mean()), float(error), len(found))


@dataclass(frozen=True, slots=True)
class Pair:
    """The runs of an experiment, with the part and without it, of the seeds that both have."""

    with_it: tuple[Record, ...]
    without_it: tuple[Record, ...]


def pair_of(experiment: Experiment, records: Sequence[Record]) -> Pair:
    """Return an experiment's runs, seed by seed."""
    first = {one.seed: one for one in records if one.arm == experiment.with_it}
    second = {one.seed: one for one in records if one.arm == experiment.without_it}
    seeds = sorted(first.keys() & second.keys())
    return Pair(tuple(first[seed] for seed in seeds), tuple(second[seed] for seed in seeds))


@dataclass(frozen=True, slots=True)
class LabFinding:
    """The result for a claim."""

    claim: ExperimentClaim
    with_it: Figure
    without_it: Figure
    holds_for: int
    seeds: int

    @property
    def verdict(self) -> str:
        """Whether the means are as claimed, and by twice their error; one seed has none."""
        mine, other = self.with_it, self.without_it
        if not self.claim.holds(mine.mean, other.mean):
            return "no"
        is_clear = abs(mine.mean - other.mean) > _ERRORS * math.hypot(mine.error, other.error)
        return "yes" if is_clear and self.seeds > 1 else "weakly"


def finding_of(claim: ExperimentClaim, pair: Pair) -> LabFinding:
    """Return what an experiment's runs say about a claim; where both are the same it is not so."""
    mine = [claim.measure(one) for one in pair.with_it]
    other = [claim.measure(one) for one in pair.without_it]
    holds_for = sum(map(claim.holds, mine, other))
    return LabFinding(claim, figure_of(mine), figure_of(other), holds_for, len(mine))


def draw(results: RunRecords, folder: Path) -> Path:
    """Write the pictures and the page, and return where the page is."""
    sections = []
    for experiment in EXPERIMENTS:
        pair = pair_of(experiment, results.records)
        if pair.with_it:
            _picture(experiment, pair, folder / f"{experiment.name}.png")
            findings = [finding_of(claim, pair) for claim in experiment.claims]
            remark = experiment.remark(pair.with_it, pair.without_it)
            text = f"{experiment.setting} {in_short(findings)} {remark}"
            sections.append((experiment, findings, text))
    page = folder / "report.html"
    about = {**results.head, **results.about}
    text = _TEMPLATES.get_template("report.html.j2").render(
        task=TASK,
        how_it_learns=_how_it_learns(results),
        sections=sections,
        about=[f"{name}: {_describe(value)}" for name, value in about.items()],
    )
    page.write_text(f"{text}\n")
    return page


def _picture(experiment: Experiment, pair: Pair, file: Path) -> None:
    names = experiment.pictures
    picture, axes = plt.subplots(1, len(names), figsize=(13, 3.6), layout="constrained")
    arms = ((pair.with_it, "with"), (pair.without_it, "without"))
    for position, name in zip(axes, names, strict=True):
        for (records, label), colour in zip(arms, _COLOURS, strict=True):
            _line(position, [one.series(name) for one in records], label, colour)
        position.set_xlabel("step")
        position.set_title(_LABELS[name], fontsize=10)
        position.grid(alpha=0.3)
        position.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].legend(frameon=False)
    count = len(pair.with_it)
    lines = "one seed" if count == 1 else f"{count} seeds, mean and standard error"
    picture.suptitle(f"{experiment.title} ({lines})")
    picture.savefig(file, dpi=110)
    plt.close(picture)


def _line(position: Axes, series: Sequence[Sequence[float]], label: str, colour: str) -> None:
    table: NDArray[np.float64] = np.array(series, dtype=float)
    steps = np.arange(1, table.shape[1] + 1)
    figures = [figure_of(list(column)) for column in table.T]
    means = np.array([figure.mean for figure in figures])
    errors = np.array([figure.error for figure in figures])
    position.plot(steps, means, color=colour, label=label)
    position.fill_between(steps, means - errors, means + errors, color=colour, alpha=0.2, lw=0)
    if len(table) > 1:
        position.plot(steps, table.T, color=colour, alpha=0.35, lw=0.7)


def in_short(findings: Sequence[LabFinding]) -> str:
    """Summarize in a line which claims hold."""
    lines = []
    for verdict, words in _SAID.items():
        texts = [one.claim.text for one in findings if one.verdict == verdict]
        if texts:
            lines.append(f"{words}: {', '.join(texts)}.")
    return " ".join(lines)


def _how_it_learns(results: RunRecords) -> str:
    shares = [one.series("valid") for one in results.records if one.arm == WHOLE.name]
    if not shares:
        return ""
    first, last = (figure_of([share[position] for share in shares]).mean for position in (0, -1))
    return (
        f"With the whole method the share of valid programs goes from {first:.0%} in the first "
        f"step to {last:.0%} in the last."
    )


def _describe(value: object) -> str:
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_describe(inner)}' for name, inner in value.items())})"
    return "; ".join(value) if isinstance(value, list) else str(value)
