"""Progress of task preparation: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from reward_server.tasks.preparation.steps import PreparationStage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.progress import TaskID

    from reward_server.tasks.preparation.steps import PreparationStep, Report


@contextmanager
def showing_steps(console: Console, total: int = 1) -> Iterator[Report]:
    """Show the steps of `total` preparations."""
    if not console.is_terminal:
        yield _Lines(console, total)
        return
    columns = (
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        yield _Bars(bars, total)


class _Numbered:
    """Numbers the tasks in the order of their first step."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._numbers: dict[str, int] = {}
        self._begun: dict[str, float] = {}

    def prefix(self, step: PreparationStep) -> str:
        number = self._numbers.setdefault(step.task_id, len(self._numbers) + 1)
        self._begun.setdefault(step.task_id, time.monotonic())
        return f"task {number} of {self._total}: " if self._total > 1 else ""

    def seconds(self, step: PreparationStep) -> float:
        return time.monotonic() - self._begun[step.task_id]


class _Lines(_Numbered):
    """Prints a line for each completed stage."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(total)
        self._console = console

    def __call__(self, step: PreparationStep) -> None:
        prefix = self.prefix(step)
        if step.done == step.total:
            after = (
                f" after {self.seconds(step):.1f} s" if step.stage is PreparationStage.READY else ""
            )
            line = escape(f"{prefix}{step}{after}")
            self._console.print(line, highlight=False, soft_wrap=True)


class _Bars(_Numbered):
    """Shows a bar for each task, labelled with its stage."""

    def __init__(self, bars: Progress, total: int) -> None:
        super().__init__(total)
        self._bars = bars
        self._rows: dict[str, TaskID] = {}

    def __call__(self, step: PreparationStep) -> None:
        text = escape(f"{self.prefix(step)}{step}")
        if step.task_id not in self._rows:
            self._rows[step.task_id] = self._bars.add_task(text, total=None)
        row, is_ready = self._rows[step.task_id], step.stage is PreparationStage.READY
        total = 1 if is_ready else step.total or None
        done = 1 if is_ready else step.done
        self._bars.update(row, description=text, total=total, completed=done)
