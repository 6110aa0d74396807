"""The texts of prompts. They ask for the form that `extract` reads: prose, then a Python block."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.tasks.briefing.wording import count_of, plain, size_of

if TYPE_CHECKING:
    from reward_server.model import Limits
    from reward_server.store.solutions.parents import ParentBody
    from reward_server.tasks.base import Card

_BACKTICKS = re.compile("`{3,}")
_FORM = (
    "Begin with your plan, a few sentences of prose. Then give the whole program in one block that "
    "opens with ```python and closes with ```; write no other block."
)
_SCRATCH = f"## Your answer\n\nSolve this task with a program of your own. {_FORM}"
_IMPROVE = (
    "## Your answer\n\nWrite a program that does better: its score on the hidden labels should be "
    "{better}. {form} Repeat what you keep."
)
_MEND = (
    "## Your answer\n\nFind out what went wrong, and write a program that runs to its end and "
    "scores well ({better} is better). {form} Repeat what you keep."
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The resources of a program for one task, and the rules it must follow."""

    task_id: str
    higher_is_better: bool
    wall_seconds: float
    memory_bytes: int
    cores: int
    has_gpu: bool

    @classmethod
    def of(cls, card: Card, ceiling: Limits, wall_seconds: float | None, *, has_gpu: bool) -> Rules:
        """Return the rules of a task on this server; a run may allow less time."""
        most = min(card.wall_seconds, ceiling.wall_seconds)
        return cls(
            task_id=card.id,
            higher_is_better=card.higher_is_better,
            wall_seconds=most if wall_seconds is None else min(most, wall_seconds),
            memory_bytes=min(card.memory_bytes, ceiling.memory_bytes),
            cores=min(card.cores, ceiling.cores),
            has_gpu=has_gpu,
        )

    @property
    def better(self) -> str:
        """Return the direction of better scores."""
        return "higher" if self.higher_is_better else "lower"


def system_text(rules: Rules) -> str:
    """Return the system message: the setting, and the rules for every program."""
    hardware = "one GPU" if rules.has_gpu else "no GPU"
    return (
        "You solve machine-learning tasks with Python programs. A program\n"
        f"- reads its data from `/workdir/{rules.task_id}/prepared/public`;\n"
        "- trains a model and writes predictions for the test data to `./submission.csv`;\n"
        f"- has {rules.wall_seconds:,g} seconds, {count_of(rules.cores, 'core')}, "
        f"{size_of(rules.memory_bytes)} of memory, {hardware} and no network: nothing can be "
        "downloaded or installed;\n"
        "- counts only if it ends without an error."
    )


def scratch_text(briefing: str) -> str:
    """Return the request for a first program."""
    return f"{briefing}\n{_SCRATCH}"


def improve_text(briefing: str, parent: ParentBody, output: str, rules: Rules) -> str:
    """Return the request for a better program than the one shown."""
    ask = _IMPROVE if parent.failure is None else _MEND
    parts = [
        f"{briefing}\n## A program to improve\n\nThis was your earlier answer:",
        in_fence(parent.code),
        verdict_text(parent, rules),
        *([output] if output else []),
        ask.format(better=rules.better, form=_FORM),
    ]
    return "\n\n".join(parts)


def output_text(block: str) -> str:
    """Return the section that shows what a program printed."""
    return f"Of what it printed:\n{block}"


def in_fence(code: str) -> str:
    """Return a program as a code block that nothing in it can close."""
    runs = _BACKTICKS.findall(code) if "```" in code else []
    longest = max(map(len, runs), default=2)
    fence = "`" * (longest + 1)
    end = "" if code.endswith("\n") else "\n"
    return f"{fence}python\n{code}{end}{fence}"


def verdict_text(parent: ParentBody, rules: Rules) -> str:
    """Describe the result of a program: its score or error, its medal, its time."""
    took = f"{parent.duration_seconds:,.1f} of the {rules.wall_seconds:,g} seconds it may take"
    if parent.failure is None:
        score = "no score" if parent.score is None else f"{parent.score:.6g}"
        medal = f", enough for a {parent.medal} medal" if parent.medal else ""
        return f"It scored {score} ({rules.better} is better){medal}. It took {took}."
    steps = ", ".join(milestone.label for milestone in parent.milestones) or "no step"
    message = plain(parent.failure.message, 300)
    return (
        f"It failed ({parent.failure.kind.value}): {message}. It took {took}.\n"
        f"Steps it came through: {steps}."
    )
