"""The text that a language model gets about a task, within a budget of characters.

It is made of sections, each in several lengths. All are first taken at their shortest; then
they grow in the order of their importance as long as the budget allows: what a submission
looks like, the files, what the task is, the rules, the main packages, the task's own
description, all packages, and last the previews of the data. Only the public folder is read,
never answers.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from reward_server.errors import RequestError
from reward_server.model import ErrorKind
from reward_server.tasks.briefing import sections
from reward_server.tasks.briefing.previews import preview
from reward_server.tasks.briefing.public_files import group_files
from reward_server.tasks.briefing.sections import read_description

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reward_server.model import Limits
    from reward_server.tasks.base import Card, Task
    from reward_server.tasks.briefing.packages import Package
    from reward_server.tasks.briefing.sections import Lengths

MIN_BUDGET = 1600
DEFAULT_BUDGET = 6000
MAX_BUDGET = 200_000
_KEPT_TEXTS = 256
_LEVEL_GROWTH = 1.15
_RULES = 3
_ALL = 1000
_PREVIEWS = "## Data preview"


@dataclass(frozen=True, slots=True)
class BriefingMaterial:
    """All sections of a briefing in all lengths, in the order in which they are read.

    `importance` names positions in `parts` and how far each grows in its turn.
    """

    parts: tuple[Lengths, ...]
    importance: tuple[tuple[int, int], ...]
    previews: tuple[Lengths, ...]


class Briefings:
    """Briefings of prepared tasks; the data of each is read once."""

    def __init__(self, ceiling: Limits, packages: Sequence[Package]) -> None:
        self._ceiling = ceiling
        self._packages = packages
        self._lock = threading.Lock()
        self._material: dict[str, tuple[str, BriefingMaterial]] = {}
        self._fit = lru_cache(_KEPT_TEXTS)(fit)
        self._levels_of = lru_cache(_KEPT_TEXTS)(levels_of)

    def get(self, task: Task, budget: int = DEFAULT_BUDGET) -> str:
        """Return the briefing of a task in at most `budget` characters.

        Raises:
            RequestError: `invalid_request` for a budget out of bounds.
        """
        if not MIN_BUDGET <= budget <= MAX_BUDGET:
            message = f"the budget must be from {MIN_BUDGET} to {MAX_BUDGET} characters"
            raise RequestError(ErrorKind.INVALID_REQUEST, message)
        with self._lock:
            return self._fit(self._gather(task), budget)

    def levels(self, task: Task) -> tuple[str, ...]:
        """Return the briefing without its rules in growing lengths, from the introduction on."""
        with self._lock:
            return self._levels_of(self._gather(task))

    def _gather(self, task: Task) -> BriefingMaterial:
        digest, material = self._material.get(task.card.id, ("", None))
        if material is None or digest != task.data_digest:
            material = gather(task.card, task.public, self._ceiling, self._packages)
            self._material[task.card.id] = task.data_digest, material
        return material


def gather(
    card: Card, public: Path, ceiling: Limits, packages: Sequence[Package]
) -> BriefingMaterial:
    """Read the public files of a task and return all sections in all lengths."""
    groups = sorted(
        group_files(public, card.public_files), key=lambda group: _rank(card, group.name)
    )
    described_elsewhere = {"description.md", card.sample_submission}
    description = read_description(public / "description.md")
    previews = (
        preview(card, public, group) for group in groups if group.name not in described_elsewhere
    )
    return BriefingMaterial(
        parts=(
            sections.about(card, description.introduction),
            sections.files(card, groups),
            sections.submission(card, public),
            sections.rules(card, ceiling),
            sections.packages(packages),
            description.lengths,
        ),
        importance=(
            (2, _ALL),
            (1, _ALL),
            (0, _ALL),
            (3, _ALL),
            (5, 1),
            (4, 1),
            (5, _ALL),
            (4, _ALL),
        ),
        previews=tuple(lengths for lengths in previews if lengths),
    )


def _rank(card: Card, name: str) -> tuple[int, str]:
    target = card.target
    names = (target.train_file, target.test_file) if target else ()
    first = (*names, card.sample_submission)
    return (first.index(name) if name in first else len(first)), name


def levels_of(material: BriefingMaterial) -> tuple[str, ...]:
    """Return the texts of growing budgets without the rules; the first is the introduction."""
    parts = (*material.parts[:_RULES], ("",), *material.parts[_RULES + 1 :])
    without_rules = replace(material, parts=parts)
    budgets, budget = [0], 500.0
    while budget < MAX_BUDGET:
        budgets.append(int(budget))
        budget *= _LEVEL_GROWTH
    return tuple(
        dict.fromkeys([f"{parts[0][0]}\n", *(fit(without_rules, most) for most in budgets)])
    )


def fit(material: BriefingMaterial, budget: int) -> str:
    """Return the text whose parts are as long as the budget allows, the important ones first."""
    own = len(material.parts)
    parts = [*material.parts, *(("", *lengths) for lengths in material.previews)]
    levels = [0] * len(parts)

    def render() -> str:
        texts = [lengths[level] for lengths, level in zip(parts, levels, strict=True)]
        heading = [_PREVIEWS] if any(texts[own:]) else []
        chosen = (text for text in [*texts[:own], *heading, *texts[own:]] if text)
        return "\n\n".join(chosen) + "\n"

    def grow(at: int, level: int) -> None:
        before = levels[at]
        levels[at] = min(level, len(parts[at]) - 1)
        if len(render()) > budget:
            levels[at] = before

    for at, most in material.importance:
        for level in range(1, min(most + 1, len(parts[at]))):
            grow(at, level)
    for level in range(1, max(map(len, parts))):
        for at in range(own, len(parts)):
            grow(at, level)
    return render()
