"""The figures of arXiv 2509.01684 that a model is compared with: Tables 1, 2 and 4.

Each is the mean and the standard error over three runs of the best score found; the RL column is
the same in all three tables. A dash stands where no run had a valid submission. Nothing here says
how a figure was made; see docs/evaluate.md for what may be compared. The paper's text counts 8, 9
and 10 tasks won by RL, its figures give 7, 9 and 11.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

_AGENTS = tomllib.loads(Path(__file__).with_name("paper.toml").read_text())["agents"]


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper reports of one agent on one task; no mean where nothing was valid."""

    agent: str
    tables: tuple[int, ...]
    mean: float | None
    standard_error: float | None


def published(task_id: str) -> tuple[Published, ...]:
    """Return the paper's figures of a task, none of a task that it does not have."""
    return tuple(
        _figure(agent["name"], tuple(agent["tables"]), agent["best"][task_id])
        for agent in _AGENTS
        if task_id in agent["best"]
    )


def _figure(agent: str, tables: tuple[int, ...], text: str) -> Published:
    if text == "-":
        return Published(agent, tables, None, None)
    mean, _, error = text.partition("±")
    return Published(agent, tables, float(mean), float(error))
