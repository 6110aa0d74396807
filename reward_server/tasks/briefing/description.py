"""A task's own description, taken apart so that the most useful part can be told first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reward_server.tasks.briefing.public_files import read_head
from reward_server.tasks.briefing.wording import plain

if TYPE_CHECKING:
    from pathlib import Path

_LINE_CHARACTERS = 2000
_READ_BYTES = 1 << 16
_IMPORTANT = ("submission", "metric", "data")


@dataclass(frozen=True, slots=True)
class TaskDescription:
    """What stands before the first heading of `description.md`, and what stands below them.

    `lengths` hold the sections from none to all, each text with one more than the last.
    """

    introduction: str
    lengths: tuple[str, ...]


def read_description(path: Path) -> TaskDescription:
    """Read a description; one that is not there says nothing."""
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
