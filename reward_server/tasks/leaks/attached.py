"""Files that belong to a row (an image, a geometry): do names, sizes, dates or marks tell?

Contents are what a model is to learn from, so they are not judged; what stands around them
is: the rest of the name, the folder, the size, the date, the metadata, a comment.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from PIL import Image, UnidentifiedImageError

from reward_server.tasks.leaks.columns import Side, association_of, find_in_table, tell
from reward_server.tasks.leaks.report import Finding, Kind, Severity
from reward_server.tasks.leaks.views import View, codes_of
from reward_server.tasks.leaks.words import find_own_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reward_server.tasks.leaks.columns import Found
    from reward_server.tasks.leaks.evidence import Evidence
    from reward_server.tasks.leaks.items import Item
    from reward_server.tasks.leaks.strength import Labels

_MOST_FILES = 2_000
_MOST_BYTES = 1 << 20
_JOINTS = re.compile(r"[._\-\s]+")
_HIDDEN = 0.2
_IMAGES = {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"}
_COMMENT = re.compile(rb"^[ \t]*(?:#|//|;|%|--)(.*)$", re.MULTILINE)

Family = list[tuple[int, "Item", str]]


def families(items: Sequence[Item], evidence: Evidence) -> dict[str, Family]:
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


def find_in_family(pattern: str, family: Family, evidence: Evidence) -> Iterator[Found]:
    """Yield what is around the files of one pattern tells about the labels of their rows."""
    step = max(1, len(family) // _MOST_FILES)
    chosen = family[::step][:_MOST_FILES]
    rows = np.array([row for row, _, _ in chosen], dtype=np.intp)
    labels = evidence.labels_of(rows)
    items = [item for _, item, _ in chosen]
    hidden = [
        View("the date of the file", numbers=np.array([item.seconds for item in items])),
        View("the date of the file", groups=codes_of(int(item.seconds) for item in items)),
        View("the name or folder of the file", groups=codes_of(rest for _, _, rest in chosen)),
        View("the mode or header of the file", groups=codes_of(item.about for item in items)),
        View("the order in the archive", numbers=np.arange(len(items), dtype=np.float64)),
    ]
    hidden += [
        View(
            f"the size of the file, rest by {modulus},",
            groups=codes_of(x.size % modulus for x in items),
        )
        for modulus in (2, 3, 4, 10)
    ]
    for view in hidden:
        yield from _judge_hidden(pattern, view, labels)
    table = _describe(items)
    side = Side(table, labels)
    for weight, finding in find_in_table(pattern, side):
        if finding.severity is Severity.LEAK:
            what = finding.place.rpartition(":")[2]
            reason = f"the {what} of a row's file: {finding.reason}"
            yield weight, Finding(Kind.TELLING_FILES, pattern, reason, finding.strength)
    yield from _own_labels(pattern, table, evidence, rows)


def _judge_hidden(pattern: str, view: View, labels: tuple[Labels, ...]) -> Iterator[Found]:
    for target in labels:
        strength = tell(view, target)
        if not strength.beats(_HIDDEN):
            strength = association_of(view, target)
        if strength.beats(_HIDDEN):
            reason = f"{view.what} tells the label of its row"
            yield strength.skill, Finding(Kind.TELLING_FILES, pattern, reason, strength.text)


def _own_labels(
    pattern: str, table: pd.DataFrame, evidence: Evidence, rows: np.ndarray
) -> Iterator[Found]:
    truth = evidence.truth.iloc[rows]
    for label in evidence.target.columns:
        own = [value.strip().lower() for value in truth[label]]
        if len(set(own)) <= 20:
            continue
        for name in table:
            for weight, finding in find_own_labels(pattern, table[name], own):
                reason = f"the {name} of a row's file: {finding.reason}"
                yield weight, Finding(Kind.TELLING_FILES, pattern, reason, finding.strength)


def _describe(items: Sequence[Item]) -> pd.DataFrame:
    """Return what is known about files without judging what they show, as a written table."""
    rows = [{"size": str(item.size), **_metadata(item)} for item in items]
    return pd.DataFrame(rows).fillna("").astype(str)


def _metadata(item: Item) -> dict[str, str]:
    data = item.read(_MOST_BYTES)
    if item.suffix not in _IMAGES:
        if b"\0" in data[:1024]:
            return {}
        comments = [x.decode("utf-8", "replace") for x in _COMMENT.findall(data)]
        last = data.rstrip().rpartition(b"\n")[2][-80:].decode("utf-8", "replace")
        return {"comment": " ".join(comments), "last line": last, "end": repr(data[-3:])}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _image_metadata(data)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        return {"format": "broken"}


def _image_metadata(data: bytes) -> dict[str, str]:
    with Image.open(io.BytesIO(data)) as image:
        found = {
            "format": f"{image.format} {image.mode}",
            "shape": str(image.size),
            "compression": str(getattr(image, "quantization", "")),
        }
        for key, value in image.info.items():
            written = value.decode("latin-1") if isinstance(value, bytes) else str(value)
            found[f"metadata {key}"] = written[:2000]
        for tag, value in image.getexif().items():
            found[f"metadata tag {tag}"] = str(value)[:500]
    end = data.rfind(b"\xff\xd9" if data[:2] == b"\xff\xd8" else b"IEND\xaeB`\x82")
    tail = data[end:] if end >= 0 else b""
    return found | {"bytes after its end": tail[:200].hex(), "length of its end": str(len(tail))}
