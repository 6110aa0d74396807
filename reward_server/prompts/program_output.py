"""An excerpt of what a program printed: losses and errors first, then its last lines."""

from __future__ import annotations

import re

from reward_server.tasks.briefing.wording import fenced

_LINE_CHARACTERS = 240
_MOST_LINES = 400
_GAP_CHARACTERS = len("[… 1,000 lines left out]\n")
_MARK = "…"
_LOSS = re.compile(
    r"loss|\bauc|roc|accura|\bacc\b|score|rmse|\bmae\b|\bmse\b|rmsle|\br2\b|\bf1|kappa|jaccard"
    r"|pearson|metric|\bval(?:id)?|\bcv\b|\bfold|epoch|\btrain|\btest|\bbest",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_ERROR = re.compile(r"Error\b|Exception\b|Traceback|^\s*File \"|[Kk]illed|[Oo]ut of memory")
_UNPRINTABLE = re.compile(r"[^\S \t]|[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\ufeff]")


def excerpt(stdout: str, stderr: str, *, failed: bool, limit: int) -> str:
    """Return the most informative lines as a code block of at most `limit` characters, or nothing.

    For a failed program errors have priority and stand last, for others losses have.
    """
    texts = (stdout, stderr) if failed else (stderr, stdout)
    lines = [line for text in texts for line in _lines(text)]
    limit -= len(fenced([])) + 16  # a fence may have to be longer than three backticks
    if sum(map(len, lines)) + len(lines) <= limit:
        return fenced(lines) if lines else ""
    chosen = _choose(lines, _ranks(lines, failed=failed), limit)
    return fenced(_with_gaps(lines, chosen)) if chosen else ""


def _lines(text: str) -> list[str]:
    found = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    return [_tidy(line) for line in found[-_MOST_LINES:]]


def _tidy(line: str) -> str:
    cut = line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + _MARK
    return cut if cut.isprintable() else _UNPRINTABLE.sub(" ", cut).rstrip()


def _ranks(lines: list[str], *, failed: bool) -> list[int]:
    """Return the rank of each line; lines of rank 0 are chosen first."""
    loss, error = (1, 0) if failed else (0, 1)
    ranks = []
    for line in lines:
        if _ERROR.search(line):
            ranks.append(error)
        else:
            ranks.append(loss if _NUMBER.search(line) and _LOSS.search(line) else 2)
    return ranks


def _choose(lines: list[str], ranks: list[int], limit: int) -> set[int]:
    """Choose lines by rank, the last first, while they and the gap marks fit the limit."""
    chosen: set[int] = set()
    left = limit - _GAP_CHARACTERS
    for at in sorted(range(len(lines)), key=lambda at: (ranks[at], -at)):
        is_alone = at - 1 not in chosen and at + 1 not in chosen
        cost = len(lines[at]) + 1 + (_GAP_CHARACTERS if is_alone else 0)
        if cost <= left:
            chosen.add(at)
            left -= cost
    return chosen


def _with_gaps(lines: list[str], chosen: set[int]) -> list[str]:
    shown: list[str] = []
    last = -1
    for at in [*sorted(chosen), len(lines)]:
        left_out = at - last - 1
        if left_out == 1 and len(lines[at - 1]) < _GAP_CHARACTERS:
            shown.append(lines[at - 1])
        elif left_out:
            shown.append(f"[… {left_out:,} {'line' if left_out == 1 else 'lines'} left out]")
        if at < len(lines):
            shown.append(lines[at])
        last = at
    return shown
