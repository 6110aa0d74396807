"""The report for people: tables on a terminal, and the same in Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from trainer_client.evaluate.report import BOTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from trainer_client.evaluate.report import Report

_PARTS = (("scratch", "from scratch"), ("improve", "improving"), (BOTH, "better of both"))
_LOOK: dict[str, Any] = {
    "title_justify": "left",
    "title_style": "bold",
    "box": box.SIMPLE_HEAD,
    "collapse_padding": True,
    "pad_edge": False,
}


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table before rendering; `marked` is the row of this model."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    marked: int | None = None


def show(report: Report, console: Console) -> None:
    """Print a report."""
    for sheet in _sheets(report):
        table = Table(title=sheet.title, **_LOOK)
        for number, column in enumerate(sheet.columns):
            table.add_column(column, justify="left" if number == 0 else "right")
        for number, row in enumerate(sheet.rows):
            table.add_row(*row, style="bold" if number == sheet.marked else None)
        console.print(table)
        for note in sheet.notes:
            console.print(f"  {note}", markup=False, highlight=False)


def markdown(report: Report) -> str:
    """Return a report as Markdown."""
    parts = [f"# {report['model']}, run {report['run_id']}", *_whether_complete(report)]
    for sheet in _sheets(report):
        lines = [_line(sheet.columns), _line(["---"] * len(sheet.columns))]
        lines += [_line(row) for row in sheet.rows]
        parts += [f"## {sheet.title}", "\n".join(lines)]
        parts += ["\n".join(f"- {note}" for note in sheet.notes)] if sheet.notes else []
    return "\n\n".join(parts) + "\n"


def _whether_complete(report: Report) -> list[str]:
    left = sum(task["unfinished"] for task in report["tasks"])
    return [f"Incomplete: {left} samples are not finished."] if left else []


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _sheets(report: Report) -> Iterator[Sheet]:
    for task in report["tasks"]:
        yield _figures(task)
        if task["paper"]:
            yield _beside_the_paper(task)


def _figures(task: Report) -> Sheet:
    direction = "higher" if task["higher_is_better"] else "lower"
    parts = [(part, label) for part, label in _PARTS if part in task]
    columns = ("", "mean", "best", "valid", "medal", "reward", "scored")
    rows = tuple(
        (
            label,
            _pair(task[part]["mean_score"]),
            _pair(task[part]["best_score"]),
            _percent(task[part]["share_valid"]),
            _percent(task[part]["share_medal"]),
            _pair(task[part]["mean_reward"]),
            str(sum(seed[part]["scored"] for seed in task["seeds"])),
        )
        for part, label in parts
    )
    title = f"{task['task_id']}: {task['metric']}, {direction} is better"
    return Sheet(title, columns, rows, tuple(_remarks(task)))


def _remarks(task: Report) -> Iterator[str]:
    yield f"data {task['source']} {task['data_digest'][:12]}"
    if task["unfinished"]:
        yield f"{task['unfinished']} samples are not finished; the same command goes on with them"
    for reason, count in task["lost"].items():
        yield f"lost {count}: {reason}"
    for reason, count in task["not_improved_on"].items():
        yield f"not improved on {count}: {reason}"
    for kind, errors in task["errors"].items():
        counts = ", ".join(f"{name} {count}" for name, count in sorted(errors.items()))
        yield from [f"failed ({kind}): {counts}"] if counts else []


def _beside_the_paper(task: Report) -> Sheet:
    """Return the paper's figures from the best on, ours among them, or first if it has no rank."""
    sign = -1 if task["higher_is_better"] else 1
    known = [one for one in task["paper"] if one["mean"] is not None]
    others = sorted(known, key=lambda one: sign * one["mean"])
    rows = [(one["agent"], _pair(one), _tables(one)) for one in others]
    rows += [(one["agent"], "-", _tables(one)) for one in task["paper"] if one["mean"] is None]
    at = 0 if task["rank"] is None else task["rank"]["rank"] - 1
    ours = "this model, twin data" if task["source"] == "twin" else "this model"
    rows.insert(at, (ours, _pair(task["best_score"]), ""))
    notes = list(task["notes"])
    if task["rank"] is not None:
        notes.insert(0, f"rank {task['rank']['rank']} of {task['rank']['of']}")
    title = f"{task['task_id']}: best score beside the paper's"
    return Sheet(title, ("", "best", "table"), tuple(rows), tuple(notes), marked=at)


def _tables(one: Report) -> str:
    return ", ".join(map(str, one["tables"]))


def _pair(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return "-"
    error = figure["standard_error"]
    return f"{figure['mean']:.3f}" + ("" if error is None else f"±{error:.3f}")


def _percent(figure: dict[str, Any] | None) -> str:
    return "-" if figure is None else f"{figure['mean']:.1%}"
