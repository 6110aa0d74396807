"""The corpus: programs as small language models write them, with the true places of their steps.

`corpus/dev` may be read while the analyzer is improved, `corpus/heldout` is only measured. A
comment `#= trained, test-loss` belongs to the innermost statement on its line (on the first line
of a loop: to the whole loop) and says which steps are done once that statement has ended, given
that no statement fails. It is removed before an instrumenter sees the program.

What counts as right, for one milestone of one program:

- Several labels of one milestone are all acceptable places: people differ, and a step done in a
  function is also done after its call.
- A marker is *right* at an acceptable place or later in the same block (or in the block around
  it, if the block is a loop's or a `with`'s) as long as no label of another milestone stands
  between the two: it is reported after the step and before the next one.
- Every other marker is *wrong*. One that runs before its step is done is always wrong, however
  many right ones follow.
- With `?` (`test-loss?`) reasonable people differ on whether this is the step at all: a marker
  is right there, and its absence is no miss, unless the same milestone also has a plain label.

A milestone is found if it has a right marker and no wrong one, falsely reported if it has a wrong
one, missed if it has a plain label and is not found. Precision is found / (found + falsely
reported), recall is found / (found + missed); milestones that are only right by a `?` count in
neither.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reward_server.model import Milestone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reward_server.model import Marker

CORPUS = Path(__file__).parent / "corpus"
SPLITS = ("dev", "heldout")
WORDS = {
    "packages": Milestone.IMPORTED_PACKAGES,
    "data": Milestone.LOADED_DATA,
    "model": Milestone.DEFINED_MODEL,
    "train-loss": Milestone.TRAINING_LOSS,
    "trained": Milestone.TRAINED_MODEL,
    "test-loss": Milestone.TESTING_LOSS,
    "predicted": Milestone.PREDICTED_TEST_LABELS,
}
_LABEL = re.compile(r"\s*#= (.+)$")
_PASSABLE = (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While)

Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A program without its labels, and the positions where markers may and must stand."""

    name: str
    code: str
    acceptable: dict[Milestone, frozenset[Position]]
    required: frozenset[Milestone]


@dataclass(frozen=True, slots=True)
class LabelTally:
    """How markers compare with the labels: found, falsely reported and missed milestones."""

    found: Counter[Milestone]
    wrong: Counter[Milestone]
    missed: Counter[Milestone]
    listing: tuple[str, ...] = ()

    def precision(self, *milestones: Milestone) -> float:
        """Return the share of what was reported that is true."""
        return _share(self.found, self.wrong, milestones)

    def recall(self, *milestones: Milestone) -> float:
        """Return the share of what is true that was reported."""
        return _share(self.found, self.missed, milestones)


def _share(
    good: Counter[Milestone], bad: Counter[Milestone], milestones: tuple[Milestone, ...]
) -> float:
    chosen = milestones or tuple(Milestone)
    right, other = sum(good[m] for m in chosen), sum(bad[m] for m in chosen)
    return right / (right + other) if right + other else 1.0


def read_corpus(split: str) -> tuple[Labelled, ...]:
    """Read one half of the corpus, in the order of the names."""
    return tuple(read_program(path) for path in sorted((CORPUS / split).glob("*.py")))


def read_program(path: Path) -> Labelled:
    """Take the labels off a program."""
    labels: list[tuple[int, Milestone, bool]] = []
    lines = path.read_text().split("\n")
    for number, line in enumerate(lines, 1):
        if match := _LABEL.search(line):
            lines[number - 1] = line[: match.start()]
            words = match[1].split(", ")
            labels += [(number, WORDS[word.rstrip("?")], word[-1] != "?") for word in words]
    code = "\n".join(lines)
    return Labelled(
        name=f"{path.parent.name}/{path.stem}",
        code=code,
        acceptable=_acceptable(ast.parse(code), labels),
        required=frozenset(milestone for _, milestone, plain in labels if plain),
    )


def _acceptable(
    tree: ast.Module, labels: Iterable[tuple[int, Milestone, bool]]
) -> dict[Milestone, frozenset[Position]]:
    labels = tuple(labels)
    places: dict[Milestone, set[Position]] = {}
    for number, milestone, _ in labels:
        others = [line for line, other, _ in labels if other is not milestone and line > number]
        limit = min(others, default=1 << 30)
        for statement in _from_label(tree.body, number):
            if statement.lineno != _innermost(tree, number).lineno and _end(statement) >= limit:
                break
            places.setdefault(milestone, set()).add((statement.lineno, statement.col_offset))
    return {milestone: frozenset(found) for milestone, found in places.items()}


def _from_label(body: list[ast.stmt], line: int) -> Iterator[ast.stmt]:
    """Yield the labelled statement, then what follows it in its block and the blocks around."""
    index = next(i for i, s in enumerate(body) if s.lineno <= line <= _end(s))
    holder = body[index]
    inner = next((b for b in _blocks(holder) if b[0].lineno <= line <= _end(b[-1])), None)
    if inner is None:
        yield from body[index:]
        return
    yield from _from_label(inner, line)
    if isinstance(holder, _PASSABLE):
        yield from body[index:]


def _innermost(tree: ast.Module, line: int) -> ast.stmt:
    return next(_from_label(tree.body, line))


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for holder in (
        statement,
        *getattr(statement, "handlers", ()),
        *getattr(statement, "cases", ()),
    ):
        for name in ("body", "orelse", "finalbody"):
            if block := getattr(holder, name, None):
                yield block


def _end(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def compare(answers: Iterable[tuple[Labelled, Iterable[Marker]]]) -> LabelTally:
    """Hold the markers of each program against its labels."""
    tally = LabelTally(Counter(), Counter(), Counter())
    listing: list[str] = []
    for program, markers in answers:
        placed: dict[Milestone, set[Position]] = {}
        for marker in markers:
            placed.setdefault(marker.milestone, set()).add((marker.line, marker.column))
        for milestone in Milestone:
            listing += _judge(program, milestone, placed.get(milestone, set()), tally)
    return LabelTally(tally.found, tally.wrong, tally.missed, tuple(listing))


def _judge(
    program: Labelled, milestone: Milestone, placed: set[Position], tally: LabelTally
) -> Iterator[str]:
    acceptable = program.acceptable.get(milestone, frozenset())
    lines = program.code.split("\n")
    if wrong := placed - acceptable:
        tally.wrong[milestone] += 1
        for line, _ in sorted(wrong):
            yield f"{program.name}:{line}: not {milestone.label}: {lines[line - 1].strip()}"
    required = milestone in program.required
    if required and placed and not wrong:
        tally.found[milestone] += 1
    elif required:
        tally.missed[milestone] += 1
        line = min(acceptable)[0]
        yield f"{program.name}:{line}: {milestone.label} missed: {lines[line - 1].strip()}"
