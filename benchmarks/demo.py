"""Has a handful of programs scored at once by a server of its own, and shows what came back.

Good programs of two tasks stand beside one program of the third with one slip each: a slip
in every step, so that the seven milestones can be seen. Ends with 1 when an outcome is not
the expected one.

    .venv/bin/python benchmarks/demo.py [--data-dir DIR]
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from server import running_server, temporary_folder

from trainer_client import RewardClient, Submission

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer_client import Answer, Fields

PROGRAMS = Path(__file__).parents[1] / "tests" / "integration" / "tasks" / "ladders"
PIZZA = "random-acts-of-pizza"
NOMAD = "nomad2018-predict-transparent-conductors"
SPOOKY = "spooky-author-identification"
RUNGS = ("constant", "simple", "good")
NAMES = {PIZZA: "pizza", NOMAD: "nomad", SPOOKY: "spooky"}
PROSE = "I would count the words of each author and fit a logistic regression to them."


@dataclass(frozen=True, slots=True)
class Entry:
    """A submission of ours, and what must become of it."""

    name: str
    task_id: str
    fields: Fields
    error: str | None = None
    milestones: int | None = None


@dataclass(frozen=True, slots=True)
class Slip:
    """One mistake in the program that is otherwise right, and how far it lets it come."""

    name: str
    right: str
    wrong: str
    milestones: int | None
    error: str = "nonzero_exit"
    wall_seconds: float | None = None

    def entry(self, code: str) -> Entry:
        """Return the program with this mistake."""
        if code.count(self.right) != 1:
            sys.exit(f"{self.right!r} does not stand in the program exactly once")
        fields: Fields = {"code": code.replace(self.right, self.wrong)}
        fields["wall_seconds"] = self.wall_seconds
        return Entry(f"{NAMES[SPOOKY]} {self.name}", SPOOKY, fields, self.error, self.milestones)


SLIPS = (
    Slip("no package", "import pandas as pd", "import pandas as pd\nimport spacy_fast", 0),
    Slip("wrong path", "prepared/public", "input", 1),
    Slip("bad argument", "C=1.0", "strength=1.0", 2),
    Slip("fit fails", "fit(fit_words, y_fit)", "fit(fit_words, y_held)", 3),
    Slip("loss fails", "log_loss(y_fit, model", "log_loss(y_held, model", 4),
    Slip("check fails", "predict_proba(held_words)", "predict_proba(X_held)", 5),
    Slip("predict fails", "predict_proba(test_words)", 'predict_proba(test["text"])', 6),
    Slip("wrong file", "./submission.csv", "./predictions.csv", 7, "no_submission"),
    Slip("wrong column", '"id", test', '"key", test', 7, "invalid_submission"),
    Slip("open bracket", "fit(fit_words, y_fit)", "fit(fit_words, y_fit", 0, "syntax_error"),
    Slip("never ends", "model.fit(fit_words, y_fit)", "while True: pass", None, "timeout", 3),
)  # fmt: skip


def read_program(task_id: str, rung: str) -> str:
    """Return a program of a task's ladder."""
    return (PROGRAMS / task_id / f"{rung}.py").read_text()


def read_entries() -> list[Entry]:
    """Return what the demo posts, the slowest programs first."""
    ladders = [
        Entry(f"{NAMES[task_id]} {rung}", task_id, {"code": read_program(task_id, rung)})
        for rung in reversed(RUNGS)
        for task_id in (PIZZA, NOMAD)
    ]
    code = read_program(SPOOKY, "simple")
    completion = f"{PROSE}\n\n```python\n{code}```\n"
    return [
        *ladders,
        Entry("spooky simple", SPOOKY, {"completion": completion}, milestones=7),
        *(slip.entry(code) for slip in SLIPS),
        Entry("spooky prose only", SPOOKY, {"completion": PROSE}, "no_code", 0),
    ]


def score_all(port: int, entries: list[Entry], console: Console) -> dict[str, Answer]:
    """Post all entries at once and return the answers by name."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    answers: dict[str, Answer] = {}
    items = [Submission(entry.task_id, run_id="demo", **entry.fields) for entry in entries]
    with (
        RewardClient(f"http://127.0.0.1:{port}") as client,
        Progress(*columns, TimeElapsedColumn(), console=console) as progress,
    ):
        bar = progress.add_task("scoring", total=len(entries))
        for result in client.score_many(items):
            if result.answer is None:
                sys.exit(f"no reward: {result.error}")
            name = entries[result.index].name
            answers[name] = result.answer
            progress.update(bar, advance=1, description=f"scored {name}")
        progress.update(bar, description="scored all")
    return answers


def build_table(entries: list[Entry], answers: dict[str, Answer]) -> Table:
    """Return the outcome of every entry, the best of each task first."""
    table = Table(
        title="What the programs earned", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
    )
    table.add_column("program", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for name in ("milestones", "reward", "score", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    by_reward = sorted(entries, key=lambda entry: -answers[entry.name].reward)
    for number, task_id in enumerate(NAMES):
        if number:
            table.add_section()
        for entry in by_reward:
            if entry.task_id == task_id:
                table.add_row(*_cells(entry.name, answers[entry.name]))
    return table


def _cells(name: str, answer: Answer) -> Iterator[str]:
    score, error = answer.score, answer.error
    yield name
    yield f"[red]{error.kind}" if error else f"[green]{answer.status}"
    yield f"{len(answer.milestones)}/7"
    yield f"{answer.reward:.4f}"
    yield "" if score is None else f"{score:.4f}"
    yield f"{answer.duration_seconds:.1f}"


def find_surprises(entries: list[Entry], answers: dict[str, Answer]) -> Iterator[str]:
    """Say of every outcome that is not the expected one what is wrong with it."""
    for entry in entries:
        answer = answers[entry.name]
        kind, reached = answer.error and answer.error.kind, len(answer.milestones)
        if kind != entry.error:
            yield f"{entry.name}: {kind or 'scored'}, expected {entry.error or 'scored'}"
        if entry.milestones not in (None, reached):
            yield f"{entry.name}: {reached} milestones, expected {entry.milestones}"
        if answer.score is None and answer.reward != round(-10 + 0.1 * reached, 10):
            yield f"{entry.name}: {answer.reward} for {reached} milestones"
    for task_id in (PIZZA, NOMAD):
        ladder = [f"{NAMES[task_id]} {rung}" for rung in RUNGS]
        rewards = [answers[name].reward for name in ladder]
        if not rewards[0] < rewards[1] < rewards[2]:
            yield f"{' < '.join(ladder)} does not hold: {rewards}"


def main() -> int:
    """Score the programs, show the table and tell whether all is as expected."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", type=Path, help="where data is kept (default: nowhere)")
    options = parser.parse_args()
    console, entries = Console(), read_entries()
    given = options.data_dir
    with temporary_folder() if given is None else nullcontext(given) as folder:
        console.print("preparing data and starting a server")
        with running_server(folder.resolve()) as port:
            answers = score_all(port, entries, console)
    console.print(build_table(entries, answers))
    surprises = list(find_surprises(entries, answers))
    for surprise in surprises:
        console.print(f"[red]unexpected[/] {surprise}")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
