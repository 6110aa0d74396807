"""What a program printed, cut to what tells most: losses and errors first, then its end."""

from __future__ import annotations

import re

from reward_server.tasks.briefing.wording import fenced

_LINE_CHARACTERS = 240
_LOOKED_AT = 400
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


def told(stdout: str, stderr: str, *, failed: bool, room: int) -> str:
    """Return the lines that tell most as a code block of at most `room` characters, or nothing.

    Of a program that failed the errors come first and stand last, of others the losses.
    """
    texts = (stdout, stderr) if failed else (stderr, stdout)
    lines = [line for text in texts for line in _lines(text)]
    room -= len(fenced([])) + 16  # a fence may have to be longer than three backticks
    if sum(map(len, lines)) + len(lines) <= room:
        return fenced(lines) if lines else ""
    chosen = _choose(lines, _ranks(lines, failed=failed), room)
    return fenced(_with_gaps(lines, chosen)) if chosen else ""


def _lines(text: str) -> list[str]:
    found = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    return [_tidy(line) for line in found[-_LOOKED_AT:]]


def _tidy(line: str) -> str:
    cut = line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + _MARK
    return cut if cut.isprintable() else _UNPRINTABLE.sub(" ", cut).rstrip()


def _ranks(lines: list[str], *, failed: bool) -> list[int]:
    """Return for each line how early it is chosen: 0 first."""
    loss, error = (1, 0) if failed else (0, 1)
    ranks = []
    for line in lines:
        if _ERROR.search(line):
            ranks.append(error)
        else:
            ranks.append(loss if _NUMBER.search(line) and _LOSS.search(line) else 2)
    return ranks


def _choose(lines: list[str], ranks: list[int], room: int) -> set[int]:
    """Take lines by rank, the last first, as long as they and the marks of gaps have room."""
    chosen: set[int] = set()
    left = room - _GAP_CHARACTERS
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
