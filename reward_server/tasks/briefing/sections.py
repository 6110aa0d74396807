"""The parts of a briefing that are always included, each in several lengths.

A task's own description is taken apart, so that its most useful sections come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from reward_server.tasks.briefing.public_files import count_records, first_records, read_head
from reward_server.tasks.briefing.wording import count_of, fenced, name_of, plain, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reward_server.model import Limits
    from reward_server.tasks.base import Card
    from reward_server.tasks.briefing.packages import Package
    from reward_server.tasks.briefing.public_files import FileGroup

Lengths: TypeAlias = tuple[str, ...]
"""One section from its shortest form to its richest; an empty text leaves it out."""

_INTRODUCTION_CHARACTERS = 4000
_LINE_CHARACTERS = 2000
_READ_BYTES = 1 << 16
_IMPORTANT = ("submission", "metric", "data")


@dataclass(frozen=True, slots=True)
class TaskDescription:
    """The text before the first heading of `description.md`, and the sections below it.

    `lengths` hold the sections from none to all, each text with one more than the last.
    """

    introduction: str
    lengths: tuple[str, ...]


def read_description(path: Path) -> TaskDescription:
    """Read a description; a missing one is empty."""
    is_there = path.is_file() and not path.is_symlink()
    text = read_head(path, _READ_BYTES).decode("utf-8", "replace") if is_there else ""
    introduction, *parts = _split(text)
    order = sorted(range(len(parts)), key=lambda at: _rank(parts[at]))
    texts = [""]
    for count in range(1, len(parts) + 1):
        chosen = sorted(order[:count])
        texts.append("\n\n".join(parts[at] for at in chosen))
    return TaskDescription(introduction, tuple(texts))


def _split(text: str) -> list[str]:
    """Return the text before the first `##` heading, and each heading with its text."""
    parts: list[list[str]] = [[]]
    is_code = False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        if line.startswith("## ") and not is_code:
            parts.append([])
        is_title = line.startswith("# ") and not is_code
        if not is_title:
            parts[-1].append(plain(line, _LINE_CHARACTERS))
    return [_close("\n".join(lines).strip()) for lines in parts]


def _close(part: str) -> str:
    fences = sum(line.startswith("```") for line in part.splitlines())
    return f"{part}\n```" if fences % 2 else part


def _rank(part: str) -> int:
    heading = part.partition("\n")[0].removeprefix("## ").strip().lower()
    return _IMPORTANT.index(heading) if heading in _IMPORTANT else len(_IMPORTANT)


def about(card: Card, introduction: str) -> Lengths:
    """Say what the task is, and what is measured."""
    better = "higher" if card.higher_is_better else "lower"
    metric = f"Metric: {plain(card.metric, 120)}; {better} is better."
    title = f"# {plain(card.title, 80)}"
    whole = introduction if len(introduction) <= _INTRODUCTION_CHARACTERS else ""
    short = plain(" ".join(introduction.split()), 120).replace("`", "'")
    texts = (f"{title}\n\n{text}\n\n{metric}" for text in (short, whole) if text)
    return tuple(dict.fromkeys(texts)) or (f"{title}\n\n{metric}",)


def files(card: Card, groups: Sequence[FileGroup]) -> Lengths:
    """List the files, as many as there is room for."""
    place = name_of(f"/workdir/{card.id}/prepared/public", 120)
    head = f"## Files\n\nAll are in {place}, which is read-only:"
    return tuple(
        dict.fromkeys(
            "\n".join([head, *_list_files(groups, count, characters)])
            for count, characters in ((3, 40), (8, 60), (40, 80))
        )
    )


def _list_files(groups: Sequence[FileGroup], most: int, characters: int) -> list[str]:
    lines = [f"- {name_of(group.name, characters)} ({_measure(group)})" for group in groups[:most]]
    left = len(groups) - most
    return [*lines, f"- and {left:,} more"] if left > 0 else lines


def _measure(group: FileGroup) -> str:
    count = f"{count_of(len(group.paths), 'file')}, " if group.is_pattern else ""
    return count + size_of(group.size)


def submission(card: Card, public: Path) -> Lengths:
    """Show the form of a submission with the first rows of the sample."""
    sample = public / card.sample_submission
    form = name_of(sample.name, 40)
    head = f"## Submission file\n\nWrite `./submission.csv` in the form of {form}"
    if not sample.is_file() or sample.is_symlink():
        columns = [plain(",".join(card.columns), 300)]
        return (f"{head}, with this header:\n{fenced(columns)}",)
    rows, lines = count_records(sample) - 1, first_records(read_head(sample, 1 << 16), 3)
    width = count_of(len(card.columns), "column")
    text = f"{head}: {width}, a header and {count_of(rows, 'row')}. It begins:"
    texts = []
    for header, row in ((80, 80), (300, 120), (3000, 240)):
        shown = [plain(line, row if at else header) for at, line in enumerate(lines)]
        texts.append(f"{text}\n{fenced(shown)}")
    return tuple(dict.fromkeys(texts))


def rules(card: Card, ceiling: Limits) -> Lengths:
    """Say what a program must do and may use."""
    seconds = min(card.wall_seconds, ceiling.wall_seconds)
    memory = size_of(min(card.memory_bytes, ceiling.memory_bytes))
    cores = count_of(min(card.cores, ceiling.cores), "core")
    disk = size_of(min(card.disk_bytes, ceiling.disk_bytes))
    largest = size_of(min(card.artifact_bytes, ceiling.artifact_bytes))
    short = (
        "## Rules\n\n"
        "- One Python program writes `./submission.csv` and exits with status 0.\n"
        f"- It has {seconds:,g} seconds, {memory} of memory, {cores}, and no network."
    )
    more = (
        f"\n- Files it writes go to its current directory, {disk} at the most, and the submission "
        f"must not be larger than {largest}."
    )
    return short, short + more


def packages(known: Sequence[Package]) -> Lengths:
    """Say what can be imported; nothing where that is not known."""
    if not known:
        return ("",)
    head = "## Packages\n\nBesides Python's standard library there are"
    named = [f"{package.name} {package.version}" for package in known]
    lengths = (", ".join(map(plain, named[:count], [60] * count)) for count in (8, 80))
    return ("", *dict.fromkeys(f"{head} {text}." for text in lengths))
