"""Files that belong to a row (an image, a geometry): do names, sizes, dates or marks tell?

Contents are what a model is to learn from, so they are not judged; what stands around them
is: the rest of the name, the folder, the size, the date, the metadata, a comment.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from reward_server.tasks.leaks.columns import Side, association_of, find_in_table, tell
from reward_server.tasks.leaks.metadata import FileMetadata, describe
from reward_server.tasks.leaks.report import LeakFinding, LeakKind, Severity
from reward_server.tasks.leaks.views import View, codes_of
from reward_server.tasks.leaks.words import find_own_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reward_server.tasks.leaks.columns import Found
    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.items import Item
    from reward_server.tasks.leaks.strength import Labels

_MOST_FILES = 2_000
_JOINTS = re.compile(r"[._\-\s]+")
_HIDDEN = 0.2

Family = list[tuple[int, "Item", str]]


def families(items: Sequence[Item], evidence: LeakEvidence) -> dict[str, Family]:
    """Return the files that are named after test rows, by the pattern of their names."""
    place = {name: row for row, name in enumerate(evidence.ids)}
    found: dict[str, Family] = defaultdict(list)
    for item in items:
        named = _row_of(item.name, place)
        if named is not None:
            row, pattern, rest = named
            found[pattern].append((row, item, rest))
    fewest = min(20, len(place))
    merged = _merge(found)
    return {pattern: family for pattern, family in merged.items() if len(family) >= fewest}


def _merge(found: dict[str, Family]) -> dict[str, Family]:
    """Join patterns that differ in a folder or a part of the name, for that part may tell."""
    merged: dict[str, Family] = defaultdict(list)
    for pattern, family in found.items():
        merged[pattern] += family
        merged[re.sub(r"[^/*]*/\*", "?/*", pattern)] += family
        merged[PurePosixPath(pattern).suffix or "*"] += family
    unique: dict[frozenset[str], str] = {}
    for pattern, family in merged.items():
        unique.setdefault(frozenset(item.name for _, item, _ in family), pattern)
    return {pattern: merged[pattern] for pattern in unique.values()}


def _row_of(name: str, place: dict[str, int]) -> tuple[int, str, str] | None:
    parts = re.split(r"[/!]", name)
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        for stem in dict.fromkeys((part, part.partition(".")[0], part.rpartition(".")[0])):
            if stem in place:
                rest = [*parts[:index], part[len(stem) :], *parts[index + 1 :]]
                pattern = "/".join([*parts[:index], "*" + part[len(stem) :], *parts[index + 1 :]])
                return place[stem], pattern, "/".join(rest)
        cut = _within(part, place)
        if cut is not None:
            suffix, around = PurePosixPath(part).suffix, part.replace(cut, "", 1)
            pattern = "/".join([*parts[:index], "*" + suffix, *parts[index + 1 :]])
            return place[cut], pattern, "/".join([*parts[:index], around, *parts[index + 1 :]])
    return None


def _within(part: str, place: dict[str, int]) -> str | None:
    """Return the longest run of a name's words that is an id."""
    cuts = [0, *(end for joint in _JOINTS.finditer(part) for end in joint.span()), len(part)]
    runs = ((cuts[i], cuts[j]) for i in range(0, len(cuts), 2) for j in range(i + 1, len(cuts), 2))
    names = sorted((part[start:end] for start, end in runs), key=len, reverse=True)
    return next((name for name in names if name in place and len(name) > 1), None)


def find_in_family(pattern: str, family: Family, evidence: LeakEvidence) -> Iterator[Found]:
    """Yield what is around the files of one pattern tells about the labels of their rows."""
    step = max(1, len(family) // _MOST_FILES)
    chosen = family[::step][:_MOST_FILES]
    rows = np.array([row for row, _, _ in chosen], dtype=np.intp)
    labels = evidence.labels_of(rows)
    descriptions = [describe(item) for _, item, _ in chosen]
    for view in (*_outside(chosen), *_inside(descriptions)):
        yield from _judge_hidden(pattern, view, labels)
    shown = pd.DataFrame([seen.shown for seen in descriptions]).fillna("").astype(str)
    for weight, finding in find_in_table(pattern, Side(shown, labels)):
        if finding.severity is Severity.LEAK:
            what = finding.place.rpartition(":")[2]
            reason = f"the {what} of a row's file: {finding.reason}"
            yield weight, LeakFinding(LeakKind.TELLING_FILES, pattern, reason, finding.strength)
    yield from _own_labels(pattern, shown, evidence, rows)


def _outside(family: Family) -> Iterator[View]:
    """Yield what a folder or an archive says about its files."""
    items = [item for _, item, _ in family]
    yield View("the date of the file", numbers=np.array([item.seconds for item in items]))
    yield View("the date of the file", groups=codes_of(int(item.seconds) for item in items))
    folders = np.array([item.folder_seconds for item in items])
    yield View("the date of its folder", numbers=folders)
    yield View("the name or folder of the file", groups=codes_of(rest for _, _, rest in family))
    yield View("the mode or header of the file", groups=codes_of(item.about for item in items))
    yield View("the order in the archive", numbers=np.arange(len(items), dtype=np.float64))
    for modulus in (2, 3, 4, 10):
        rests = codes_of(item.size % modulus for item in items)
        yield View(f"the size of the file, rest by {modulus},", groups=rests)


def _inside(descriptions: list[FileMetadata]) -> Iterator[View]:
    for name in sorted({name for seen in descriptions for name in seen.hidden}):
        values = codes_of(seen.hidden.get(name, "") for seen in descriptions)
        yield View(f"the {name} of the file", groups=values)


def _judge_hidden(pattern: str, view: View, labels: tuple[Labels, ...]) -> Iterator[Found]:
    for target in labels:
        strength = tell(view, target)
        if not strength.beats(_HIDDEN):
            strength = association_of(view, target)
        if strength.beats(_HIDDEN):
            reason = f"{view.what} tells the label of its row"
            yield (
                strength.skill,
                LeakFinding(LeakKind.TELLING_FILES, pattern, reason, strength.text),
            )


def _own_labels(
    pattern: str, table: pd.DataFrame, evidence: LeakEvidence, rows: np.ndarray
) -> Iterator[Found]:
    truth = evidence.truth.iloc[rows]
    for label in evidence.target.columns:
        own = [value.strip().lower() for value in truth[label]]
        if len(set(own)) <= 20:
            continue
        for name in table:
            for weight, finding in find_own_labels(pattern, table[name], own):
                reason = f"the {name} of a row's file: {finding.reason}"
                yield weight, LeakFinding(LeakKind.TELLING_FILES, pattern, reason, finding.strength)
