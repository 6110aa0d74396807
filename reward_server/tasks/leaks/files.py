"""Do files beside the tables reveal labels: by their bytes, or by their names and metadata?

A file may hold the answers as a table, a list, an array or lines with ids. Of files that belong
to a row (an image, a geometry) the content is what a model learns from, so only their names,
sizes, dates, order and metadata are checked. All files are compared by their digests with the
private files, and those of test rows with the others.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from PIL import Image

from reward_server.tasks.leaks.columns import (
    LabeledTable,
    find_in_table,
    find_own_labels,
    own_labels,
)
from reward_server.tasks.leaks.evidence import parse_written, take_part
from reward_server.tasks.leaks.public_files import (
    IMAGES,
    MOST_FILES,
    MOST_UNPACKED_BYTES,
    PublicFile,
    UnreadableArchiveError,
    describe_file,
    files_below,
    unpack,
)
from reward_server.tasks.leaks.report import (
    LeakCheck,
    LeakFinding,
    LeakKind,
    Severity,
    strongest_by_place,
    unchecked,
    weigh,
)
from reward_server.tasks.leaks.views import HIDDEN_SKILL, View, codes_of, hidden_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from reward_server.tasks.base import Card
    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.report import WeighedFinding
    from reward_server.tasks.leaks.strength import Codes

    Aligned = tuple[str | None, Codes, pd.DataFrame]
    Family = list[tuple[int, PublicFile, str]]

_MOST_READ_BYTES = 512 << 20
_MANY_ALIKE = 40
_MOST_ROW_FILES = 2_000
_NOTABLE_COPIES = 0.005
_TOO_MANY_COPIES = 0.02
_FEWEST_IDS = 20
_MOST_FIELDS = 12
_MOST_IMAGE_BYTES = 4 << 20
_MOST_PIXELS = 1 << 24
_DTYPES = ("u1", "i2", "i4", "i8", "f4", "f8")
_VARYING = re.compile(r"\d+")
_SEPARATORS = re.compile(r"[,;\t|: ]+")
_QUOTES = re.compile(r"[\s\"'\[\](){}]+")
_JOINTS = re.compile(r"[._\-\s]+")


def check_files(
    card: Card, public: Path, answers: Path, evidence: LeakEvidence | None
) -> LeakCheck:
    """Check every public file that is no table of the task, and the members of archives."""
    files, findings = unpack(files_below(public))
    families = {} if evidence is None else _families(files, evidence)
    of_rows = {file.name: file for family in families.values() for _, file, _ in family}
    names = _names_of_tables(card)
    tables = [file for file in files if file.name in names]
    private = [file for file in files_below(answers.parent) if file.size]
    read = 0
    for file in _sample_alike(files):
        if file.name in of_rows or file.name in names:
            continue
        try:
            if _is_among(private, file):
                text = "it is a copy of a private file"
                findings.append(LeakFinding(LeakKind.ANSWERS_IN_FILE, file.name, text))
            elif file.size > MOST_UNPACKED_BYTES or read > _MOST_READ_BYTES:
                findings.append(unchecked(file.name, "it is too large to be checked"))
            elif evidence is not None and file.size and not _is_among(tables, file):
                read += file.size
                findings += _find_answers(file, evidence)
        except UnreadableArchiveError as error:
            findings.append(unchecked(file.name, str(error)))
    found: list[WeighedFinding] = [(1.0, finding) for finding in findings]
    if evidence is not None:
        for pattern, family in families.items():
            found += _find_in_metadata(pattern, family, evidence)
        found += _find_copies(list(of_rows.values()), files, evidence.target.train_file)
    more = f", the first {MOST_FILES} only" if len(files) >= MOST_FILES else ""
    scope = f"{len(files)} files and members of archives{more}, {len(of_rows)} named after rows"
    return LeakCheck("files beside the tables", scope, strongest_by_place(found))


def _names_of_tables(card: Card) -> set[str]:
    target = card.target
    tables = set() if target is None else {target.train_file, target.test_file}
    return tables | {card.sample_submission}


def _is_among(others: list[PublicFile], file: PublicFile) -> bool:
    alike = [other for other in others if other.size == file.size]
    return bool(alike) and _digest(file) in map(_digest, alike)


def _digest(file: PublicFile) -> str:
    digest = hashlib.sha256()
    with file.open() as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _sample_alike(files: list[PublicFile]) -> Iterator[PublicFile]:
    """Yield the files that are not one of many alike, and of many alike the first and largest."""
    alike: dict[str, list[PublicFile]] = defaultdict(list)
    for file in files:
        parts = file.name.split("/")
        pattern = "/".join(_VARYING.sub("#", part) for part in parts[:-1])
        alike[f"{pattern}/{file.suffix or parts[-1]}"].append(file)
    for group in alike.values():
        usual = sorted(file.size for file in group)[len(group) // 2]
        are_few = len(group) <= _MANY_ALIKE
        yield from (x for n, x in enumerate(group) if are_few or n < 5 or x.size > 4 * usual)


def _find_answers(file: PublicFile, evidence: LeakEvidence) -> Iterator[LeakFinding]:
    """Yield whether the bytes of a public file reveal the labels of test rows."""
    data = file.read()
    yield from _find_named_ids(file.name, data, evidence)
    for table in (*_tables_in(data), *_arrays_in(data, file.suffix, len(evidence.ids))):
        for aligned in _align(table, evidence):
            found = next(_check_aligned(file.name, aligned, evidence), None)
            if found is not None:
                yield found
                return


def _find_named_ids(place: str, data: bytes, evidence: LeakEvidence) -> Iterator[LeakFinding]:
    """Yield whether being named in a file at all reveals the label of a row."""
    words = set(_SEPARATORS.split(_QUOTES.sub(" ", data.decode("utf-8", errors="replace"))))
    named = np.array([name in words for name in evidence.ids])
    if named.sum() < _FEWEST_IDS // 2 or named.all():
        return
    for labels in evidence.labels:
        strength = View("", groups=named.astype(np.intp)).predict(labels)
        if strength.beats(HIDDEN_SKILL):
            text = "the rows whose ids it names have other labels than the rest"
            yield LeakFinding(LeakKind.ANSWERS_IN_FILE, place, text, strength.text)


def _check_aligned(place: str, aligned: Aligned, evidence: LeakEvidence) -> Iterator[LeakFinding]:
    id_name, rows, table = aligned
    how = "in the order of the test file" if id_name is None else "beside the ids"
    part = take_part(table)
    rows, skipped = rows[part.rows], [] if id_name is None else [id_name]
    labeled = LabeledTable(part.table, evidence.labels_of(rows))
    train = LabeledTable(evidence.train.table, evidence.train_labels)
    found = list(find_in_table(place, labeled, train, skipped))
    for own in own_labels(evidence, rows):
        for name in map(str, part.table.columns.drop(skipped)):
            if not _is_public(name, part.table, rows, evidence):
                found += find_own_labels(place, part.table[name], own)
    for _, finding in found:
        if finding.severity is Severity.LEAK:
            text = f"it holds labels of test rows, {how}: {finding.reason}"
            yield LeakFinding(LeakKind.ANSWERS_IN_FILE, place, text, finding.strength)


def _is_public(name: str, table: pd.DataFrame, rows: Codes, evidence: LeakEvidence) -> bool:
    """Tell whether a column is that of the test file."""
    test = evidence.test.table
    if name not in test or evidence.test.is_part:
        return name in test
    return float(np.mean(table[name].to_numpy() == test[name].to_numpy()[rows])) > 0.95


def _align(table: pd.DataFrame, evidence: LeakEvidence) -> Iterator[Aligned]:
    """Yield the rows of a table that are test rows: by a column of ids, or by their number."""
    wanted = set(evidence.ids)
    for name in table.columns:
        ids = table[name].str.strip()
        hits = ids.isin(wanted).to_numpy()
        if hits.sum() >= min(_FEWEST_IDS, len(wanted)) and len(table.columns) > 1:
            rows = evidence.rows_of(ids[hits].tolist())
            part = table[hits][rows >= 0].reset_index(drop=True)
            yield str(name), rows[rows >= 0], part
    for length in (len(table), len(table) + 1):
        if length == len(evidence.ids):
            whole = table
            if length > len(table):
                first = pd.DataFrame([list(table.columns)], columns=table.columns, dtype=str)
                whole = pd.concat([first, table], ignore_index=True)
            yield None, np.arange(length), whole
            yield None, np.arange(length)[::-1], whole


def _tables_in(data: bytes) -> Iterator[pd.DataFrame]:
    if b"\0" in data[:4096]:
        return
    is_json = data.lstrip()[:1] in {b"[", b"{"}
    for form in (".json", ".jsonl") if is_json else (".csv",):
        with suppress(ValueError, RecursionError):
            yield parse_written(data, form)
            break
    lines = [line.strip() for line in data.decode("utf-8", errors="replace").splitlines()]
    lines = [line for line in lines if line]
    fields = [[field.strip("\"'[](){}") for field in _SEPARATORS.split(line)] for line in lines]
    widest = min(max(map(len, fields), default=0), _MOST_FIELDS)
    columns = {
        f"field {n + 1}": [row[n] if n < len(row) else "" for row in fields] for n in range(widest)
    }
    yield pd.DataFrame({**columns, "line": lines}, dtype=str)


def _arrays_in(data: bytes, suffix: str, rows: int) -> Iterator[pd.DataFrame]:
    """Yield bytes as arrays that have a value, a row or a bit for every test row."""
    text = data.strip()
    pieces = re.split(rb"[\s,;|]+", text, maxsplit=rows + 1)
    if len(pieces) == rows and rows > 1:
        yield pd.DataFrame({"pieces": [piece.decode("utf-8", "replace") for piece in pieces]})
    arrays = [*_stored_arrays(data, suffix)]
    arrays += [
        np.frombuffer(data, dtype)
        for dtype in _DTYPES
        if len(data) == rows * np.dtype(dtype).itemsize
    ]
    if len(data) == (rows + 7) // 8:
        bits = np.frombuffer(data, np.uint8)
        arrays += [np.unpackbits(bits, bitorder=order)[:rows] for order in ("big", "little")]
    if len(text) == rows and b"\n" not in text:
        arrays.append(np.frombuffer(text, np.uint8))
    for array in arrays:
        if array.ndim in {1, 2} and rows in array.shape:
            flat = array if array.shape[0] == rows else array.T
            values = flat.reshape(rows, -1)[:, :64].tolist()
            yield pd.DataFrame([[str(value) for value in row] for row in values]).rename(
                columns=str
            )


def _stored_arrays(data: bytes, suffix: str) -> Iterator[np.ndarray]:
    with suppress(OSError, ValueError, SyntaxError, EOFError):
        if suffix in {".npy", ".npz"}:
            loaded = np.load(io.BytesIO(data), allow_pickle=False)
            yield from [loaded] if isinstance(loaded, np.ndarray) else loaded.values()
        elif suffix in IMAGES and len(data) < _MOST_IMAGE_BYTES:
            with Image.open(io.BytesIO(data)) as image:
                if image.width * image.height < _MOST_PIXELS:
                    yield np.asarray(image.convert("L"))


def _families(files: Sequence[PublicFile], evidence: LeakEvidence) -> dict[str, Family]:
    """Return the files that are named after test rows, by the pattern of their names.

    Files are also grouped by broader patterns, for the folder or the ending may reveal the label.
    """
    row_of = {name: row for row, name in enumerate(evidence.ids)}
    found: dict[str, Family] = defaultdict(list)
    for file in files:
        named = _row_in_name(file.name, row_of)
        if named is not None:
            row, pattern, rest = named
            wider = re.sub(r"[^/*]*/\*", "?/*", pattern)
            for name in dict.fromkeys((pattern, wider, PurePosixPath(pattern).suffix or "*")):
                found[name].append((row, file, rest))
    fewest = min(_FEWEST_IDS, len(row_of))
    unique: dict[frozenset[str], str] = {}
    for pattern, family in found.items():
        if len(family) >= fewest:
            unique.setdefault(frozenset(file.name for _, file, _ in family), pattern)
    return {pattern: found[pattern] for pattern in unique.values()}


def _row_in_name(name: str, row_of: dict[str, int]) -> tuple[int, str, str] | None:
    """Return the row whose id is in a name, the name's pattern, and the rest of the name."""
    parts = re.split(r"[/!]", name)
    for index in range(len(parts) - 1, -1, -1):
        before, part, after = parts[:index], parts[index], parts[index + 1 :]
        found = next((run for run in _runs(part) if run in row_of), None)
        if found is not None:
            suffix = PurePosixPath(part).suffix if part != found else ""
            pattern = "/".join([*before, f"*{suffix}", *after])
            return row_of[found], pattern, "/".join([*before, part.replace(found, "", 1), *after])
    return None


def _runs(part: str) -> Iterator[str]:
    """Yield runs of a name's words, the longest first; a letter within a name is no id."""
    cuts = [0, *(end for joint in _JOINTS.finditer(part) for end in joint.span()), len(part)]
    spans = [(cuts[i], cuts[j]) for i in range(0, len(cuts), 2) for j in range(i + 1, len(cuts), 2)]
    for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
        if end - start > 1 or (start == 0 and part[end : end + 1] in {"", "."}):
            yield part[start:end]


def _find_in_metadata(
    pattern: str, family: Family, evidence: LeakEvidence
) -> Iterator[WeighedFinding]:
    """Yield the names and metadata of files that reveal the labels of their rows."""
    chosen = family[:: max(1, len(family) // _MOST_ROW_FILES)][:_MOST_ROW_FILES]
    rows = np.array([row for row, _, _ in chosen], dtype=np.intp)
    labels = evidence.labels_of(rows)
    described = [describe_file(file) for _, file, _ in chosen]
    hidden = pd.DataFrame([seen.hidden for seen in described]).fillna("").astype(str)
    views = [hidden_view(f"the {name} of the file", hidden[name]) for name in hidden]
    for view in (*_views_of_listing(chosen), *views):
        for target in labels:
            strength = view.relate(target)
            if strength.beats(HIDDEN_SKILL):
                text = f"{view.what} predicts the label of its row"
                yield weigh(LeakKind.FILE_METADATA, pattern, text, strength)
    shown = pd.DataFrame([seen.shown for seen in described]).fillna("").astype(str)
    found = list(find_in_table(pattern, LabeledTable(shown, labels)))
    truth = evidence.truth.iloc[rows]
    for label in evidence.target.columns:
        own = [value.strip().lower() for value in truth[label]]
        if len(set(own)) > 20:
            for name in shown:
                found += find_own_labels(f"{pattern}:{name}", shown[name], own)
    for weight, finding in found:
        if finding.severity is Severity.LEAK:
            reason = f"the {finding.place.rpartition(':')[2]} of a row's file: {finding.reason}"
            about = finding.strength
            yield weight, LeakFinding(LeakKind.FILE_METADATA, pattern, reason, about)


def _views_of_listing(family: Family) -> Iterator[View]:
    """Yield what a folder or an archive lists of its files."""
    files = [file for _, file, _ in family]
    yield View("the date of the file", numbers=np.array([file.seconds for file in files]))
    yield View("the date of the file", groups=codes_of(int(file.seconds) for file in files))
    folders = np.array([file.folder_seconds for file in files])
    yield View("the date of its folder", numbers=folders)
    yield View("the name or folder of the file", groups=codes_of(rest for _, _, rest in family))
    yield View("the mode or header of the file", groups=codes_of(x.attributes for x in files))
    yield View("the position in the archive", numbers=np.arange(len(files), dtype=np.float64))
    for modulus in (2, 3, 4, 10):
        rests = codes_of(file.size % modulus for file in files)
        yield View(f"the size of the file, rest by {modulus},", groups=rests)


def _find_copies(
    of_rows: list[PublicFile], files: Iterable[PublicFile], train_file: str
) -> Iterator[WeighedFinding]:
    """Yield whether files of test rows are among the other files, byte for byte."""
    suffixes = {file.suffix for file in of_rows}
    by_size: dict[int, list[PublicFile]] = defaultdict(list)
    for file in files:
        if file.suffix in suffixes and file.size:
            by_size[file.size].append(file)
    chosen = of_rows[:_MOST_ROW_FILES]
    groups = [by_size[size][:50] for size in {file.size for file in chosen}]
    alike = {file.name: file for group in groups if len(group) > 1 for file in group}
    # An archive of files that are beside it holds no others.
    plain = {name.rpartition("/")[2] for name in alike if "!" not in name}
    digests = {
        name: _digest(file)
        for name, file in alike.items()
        if "!" not in name or re.split(r"[/!]", name)[-1] not in plain
    }
    counts = Counter(digests.values())
    copied = sum(counts[digests[file.name]] > 1 for file in chosen if file.name in digests)
    share = copied / max(len(chosen), 1)
    if share >= _NOTABLE_COPIES:
        severity = Severity.LEAK if share >= _TOO_MANY_COPIES else Severity.NOTE
        text, strength = "files of test rows are among the train files", f"{share:.1%} of the files"
        yield 1.0, LeakFinding(LeakKind.OVERLAP, train_file, text, strength, severity)
