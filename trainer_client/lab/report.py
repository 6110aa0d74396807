"""The report: a picture and a sentence for each experiment, beside what the paper found."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from trainer_client.lab.experiments import EXPERIMENTS, WHOLE
from trainer_client.lab.space import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from trainer_client.lab.experiments import Experiment
    from trainer_client.lab.records import Book, Record

mpl.use("Agg")  # a window system is not needed
_COLOURS = ("#1f6feb", "#d1632a")
_LABELS = {
    "mean_duration": "mean execution time of the samples trained on, seconds",
    "mean_score": "mean score (-10 where invalid)",
    "best_so_far": "best score so far (AUC)",
    "valid": "share of valid programs",
}
_SLOW = ("extra trees", "random forest", "histogram boosting", "gradient boosting")


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over seeds, with its standard error."""

    mean: float
    error: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.error:.3f}"


def figure_of(numbers: Sequence[float]) -> Figure:
    """Return the mean and its standard error; of one number there is no error."""
    found = np.asarray([number for number in numbers if number == number])  # noqa: PLR0124 - no NaN
    if not len(found):
        return Figure(float("nan"), float("nan"), 0)
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
    return Figure(float(found.mean()), float(error), len(found))


def slow_share(record: Record) -> float:
    """Return how much of what the policy writes in the end is of a slow and good family."""
    return float(sum(record.final["families"][name] for name in _SLOW))


def draw(book: Book, folder: Path) -> None:
    """Write the pictures and the page."""
    sections = []
    for experiment in EXPERIMENTS:
        whole = [one for one in book.records if one.arm == WHOLE]
        without = [one for one in book.records if one.arm == experiment.arm]
        if whole and without:
            name = f"{experiment.arm.replace(' ', '-')}.png"
            _picture(experiment, whole, without, folder / name)
            sections.append(_section(experiment, whole, without, name))
    (folder / "report.html").write_text(_page(book, sections))


def _picture(
    experiment: Experiment, whole: Sequence[Record], without: Sequence[Record], file: Path
) -> None:
    names = list(dict.fromkeys((experiment.measure, "best_so_far", "valid")))
    picture, places = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    for place, name in zip(places, names, strict=False):
        for records, label, colour in zip(
            (whole, without), ("with", "without"), _COLOURS, strict=True
        ):
            _line(place, [one.series(name) for one in records], label, colour)
        place.set_xlabel("step")
        place.set_title(_LABELS[name], fontsize=10)
        place.grid(alpha=0.3)
    if len(names) < len(places):
        _families(places[-1], whole, without)
    places[0].legend(frameon=False)
    picture.suptitle(experiment.title)
    picture.savefig(file, dpi=110)
    plt.close(picture)


def _line(place: Axes, series: Sequence[Sequence[float]], label: str, colour: str) -> None:
    table: NDArray[np.float64] = np.array(series, dtype=float)
    steps = np.arange(1, table.shape[1] + 1)
    figures = [figure_of(list(column)) for column in table.T]
    means = np.array([figure.mean for figure in figures])
    errors = np.array([figure.error for figure in figures])
    place.plot(steps, means, color=colour, label=f"{label} ({len(series)} seeds)")
    place.fill_between(steps, means - errors, means + errors, color=colour, alpha=0.2, lw=0)


def _families(place: Axes, whole: Sequence[Record], without: Sequence[Record]) -> None:
    """Draw what the policy chooses in the end."""
    heights = np.arange(len(FAMILIES))
    for records, shift, colour in zip((whole, without), (-0.2, 0.2), _COLOURS, strict=True):
        shares = [np.mean([one.final["families"][name] for one in records]) for name in FAMILIES]
        place.barh(heights + shift, shares, height=0.4, color=colour)
    place.set_yticks(heights, FAMILIES, fontsize=8)
    place.invert_yaxis()
    place.set_title("share of each family in the end", fontsize=10)


def _section(
    experiment: Experiment, whole: Sequence[Record], without: Sequence[Record], picture: str
) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(what)}</td><td>{figure_of([of(one) for one in whole])}</td>"
        f"<td>{figure_of([of(one) for one in without])}</td></tr>"
        for what, of in _ROWS.items()
    )
    return (
        f"<h2>{html.escape(experiment.title)}</h2>"
        f"<p><b>The paper:</b> {html.escape(experiment.paper)}</p>"
        f'<img src="{picture}" alt="{html.escape(experiment.title)}">'
        f"<table><tr><th></th><th>with</th><th>without</th></tr>{rows}</table>"
    )


def steps_to(record: Record, name: str, level: float) -> float:
    """Return the first step from which a number is at least so high, one more than all if never."""
    series = record.series(name)
    return float(next((i for i, value in enumerate(series, 1) if value >= level), len(series) + 1))


_ROWS: dict[str, Callable[[Record], float]] = {
    "best score": lambda one: one.series("best_so_far")[-1],
    "mean score of valid programs in the end": lambda one: one.final["mean_score"] or float("nan"),
    "execution time in the end, seconds": lambda one: one.final["mean_duration"],
    "share of forests and boosting in the end": slow_share,
    "valid in the end": lambda one: one.final["valid"],
    "steps until 90 % are valid": lambda one: steps_to(one, "valid", 0.9),
}


def _page(book: Book, sections: Sequence[str]) -> str:
    about = "".join(
        f"<li>{html.escape(str(name))}: {html.escape(str(value))}</li>"
        for name, value in book.about.items()
    )
    seeds = sorted({one.seed for one in book.records})
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>The lab</title><style>'
        "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "img{width:100%}td,th{padding:.2em 1em;text-align:left;border-bottom:1px solid #ddd}"
        "table{border-collapse:collapse}</style><h1>Three effects, on one machine</h1>"
        "<p>A small policy writes whole scripts for a twin of tabular-playground-series-may-2022, "
        "the reward server runs and grades them, and PPO learns from the first B of m·B that end. "
        "Lines are means over seeds, bands one standard error.</p>"
        f"{''.join(sections)}<h2>How it was made</h2><ul><li>seeds: {seeds}</li>{about}</ul></html>"
    )
