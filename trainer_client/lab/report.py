"""The report: a picture, a table and a verdict for each experiment, beside what the paper found."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
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
_STYLE = """
body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}
img{width:100%}
table{border-collapse:collapse}
td,th{padding:.2em 1.2em .2em 0;text-align:left;border-bottom:1px solid #ddd}
.paper{color:#555}
.yes{color:#1a7f37}
.no{color:#b35900}
.weakly{color:#777}
"""


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
            sections.append(_section(experiment, pair))
    page = folder / "report.html"
    page.write_text(_page(results, sections))
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


def _section(experiment: Experiment, pair: Pair) -> str:
    findings = [finding_of(claim, pair) for claim in experiment.claims]
    rows = "".join(map(_row, findings))
    remark = experiment.remark(pair.with_it, pair.without_it)
    text = f"{experiment.setting} {in_short(findings)} {remark}"
    return (
        f"<h2>{html.escape(experiment.title)}</h2>"
        f'<p class="paper"><b>The paper:</b> {html.escape(experiment.paper)}</p>'
        f"<p><b>Here:</b> {html.escape(text)}</p>"
        f'<img src="{experiment.name}.png" alt="{html.escape(experiment.title)}">'
        f"<table><tr><th>here</th><th>with<br>({html.escape(experiment.with_it)})</th>"
        f"<th>without<br>({html.escape(experiment.without_it)})</th>"
        "<th>as the paper says?</th></tr>"
        f"{rows}</table>"
    )


def _row(finding: LabFinding) -> str:
    claim, unit = finding.claim, finding.claim.unit
    text = f"{finding.verdict}, {finding.holds_for} of {finding.seeds} seeds"
    return (
        f"<tr><td>{html.escape(claim.text)}</td><td>{finding.with_it}{unit}</td>"
        f"<td>{finding.without_it}{unit}</td>"
        f'<td class="{finding.verdict.split()[0]}">{text}</td></tr>'
    )


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


def _page(results: RunRecords, sections: Sequence[str]) -> str:
    about = "".join(
        f"<li>{html.escape(name)}: {html.escape(_describe(value))}</li>"
        for name, value in {**results.head, **results.about}.items()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>The lab</title>'
        f"<style>{_STYLE}</style><h1>Three effects, on one machine</h1>"
        f"<p>A small policy writes whole scripts for the twin of {TASK}. The reward server runs "
        "and grades every one of them; PPO learns from the first B of m·B that end, and the others "
        "are cancelled. Two families of models are fast and mediocre, four slow and better. Lines "
        "are means over seeds, bands standard errors, thin lines single runs. All arms train on "
        "the same number of samples. A difference is called as in the paper if it is larger than "
        f"twice its standard error; one seed cannot show that.</p><p>{_how_it_learns(results)}</p>"
        f"{''.join(sections)}<h2>How it was made</h2><ul>{about}</ul></html>\n"
    )
