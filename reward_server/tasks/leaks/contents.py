"""Do the bytes of a file hold the answers: as a table, a list, an array or lines with ids?"""

from __future__ import annotations

import io
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from PIL import Image

from reward_server.tasks.leaks.columns import Side, find_in_table, tell
from reward_server.tasks.leaks.evidence import part_of_test
from reward_server.tasks.leaks.items import IMAGES
from reward_server.tasks.leaks.report import LeakFinding, LeakKind, Severity
from reward_server.tasks.leaks.tables import parse_written
from reward_server.tasks.leaks.views import View
from reward_server.tasks.leaks.words import find_own_labels, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reward_server.tasks.leaks.evidence import LeakEvidence
    from reward_server.tasks.leaks.strength import Codes

_SEPARATORS = re.compile(r"[,;\t|: ]+")
_JOINED = re.compile(r"[\s\"'\[\](){}]+")
_FEWEST_IDS = 20
_TELLING = 0.2
_MOST_IMAGE_BYTES = 4 << 20
_MOST_PIXELS = 1 << 24
_DTYPES = ("u1", "i2", "i4", "i8", "f4", "f8")


def find_answers(
    place: str, data: bytes, suffix: str, evidence: LeakEvidence
) -> Iterator[LeakFinding]:
    """Yield whether the bytes of a public file tell the labels of test rows."""
    yield from _listed(place, data, evidence)
    for table in (*_tables(data), *_vectors(data, suffix, len(evidence.ids))):
        for name, rows, part in _aligned(table, evidence):
            found = list(_judge(place, name, rows, part, evidence))
            if found:
                yield found[0]
                return


def _listed(place: str, data: bytes, evidence: LeakEvidence) -> Iterator[LeakFinding]:
    """Yield whether being named in a file at all tells the label of a row."""
    words = set(_SEPARATORS.split(_JOINED.sub(" ", data.decode("utf-8", errors="replace"))))
    named = np.array([name in words for name in evidence.ids])
    if named.sum() < _FEWEST_IDS // 2 or named.all():
        return
    for labels in evidence.labels:
        strength = tell(View("", groups=named.astype(np.intp)), labels)
        if strength.beats(_TELLING):
            text = "the rows whose ids it names have other labels than the rest"
            yield LeakFinding(LeakKind.ANSWERS_IN_FILE, place, text, strength.text)


def _judge(
    place: str, id_name: str | None, rows: Codes, table: pd.DataFrame, evidence: LeakEvidence
) -> Iterator[LeakFinding]:
    how = "in the order of the test file" if id_name is None else "beside the ids"
    part = part_of_test(table)
    rows = rows[part.rows]
    side = Side(part.table, evidence.labels_of(rows))
    known = Side(evidence.train.table, evidence.train_labels)
    for _, finding in find_in_table(place, side, known, [] if id_name is None else [id_name]):
        if finding.severity is Severity.LEAK:
            text = f"it holds labels of test rows, {how}: {finding.reason}"
            yield LeakFinding(LeakKind.ANSWERS_IN_FILE, place, text, finding.strength)
    others = part.table.columns.drop([id_name] if id_name is not None else [])
    for own in names_of(evidence, rows):
        for name in others:
            if not _is_public(str(name), part.table, rows, evidence):
                for _, finding in find_own_labels(place, part.table[name], own):
                    text = f"{finding.reason}, {how}"
                    yield LeakFinding(LeakKind.ANSWERS_IN_FILE, place, text, finding.strength)


def _is_public(name: str, table: pd.DataFrame, rows: Codes, evidence: LeakEvidence) -> bool:
    """Tell whether a column is that of the test file."""
    test = evidence.test.table
    if name not in test or evidence.test.is_part:
        return name in test
    return float(np.mean(table[name].to_numpy() == test[name].to_numpy()[rows])) > 0.95


def _aligned(
    table: pd.DataFrame, evidence: LeakEvidence
) -> Iterator[tuple[str | None, Codes, pd.DataFrame]]:
    """Yield the rows of a table that are test rows: by a column of ids, or by their number."""
    wanted = set(evidence.ids)
    for name in table.columns:
        ids = table[name].str.strip()
        hits = ids.isin(wanted)
        if hits.sum() >= min(_FEWEST_IDS, len(wanted)) and len(table.columns) > 1:
            part = table[hits.to_numpy()].reset_index(drop=True)
            rows = evidence.rows_of(ids[hits].tolist())
            inside = rows >= 0
            yield str(name), rows[inside], part[inside].reset_index(drop=True)
    for length in (len(table), len(table) + 1):
        if length == len(evidence.ids):
            whole = table
            if length > len(table):
                first = pd.DataFrame([list(table.columns)], columns=table.columns, dtype=str)
                whole = pd.concat([first, table], ignore_index=True)
            yield None, np.arange(length), whole
            yield None, np.arange(length)[::-1], whole


def _tables(data: bytes) -> Iterator[pd.DataFrame]:
    if b"\0" in data[:4096]:
        return
    is_json = data.lstrip()[:1] in {b"[", b"{"}
    for form in (".json", ".jsonl") if is_json else (".csv",):
        with suppress(ValueError, RecursionError):
            yield parse_written(data, form)
            break
    yield _lines(data)


def _lines(data: bytes) -> pd.DataFrame:
    lines = [line.strip() for line in data.decode("utf-8", errors="replace").splitlines()]
    lines = [line for line in lines if line]
    fields = [[field.strip("\"'[](){}") for field in _SEPARATORS.split(line)] for line in lines]
    widest = min(max(map(len, fields), default=0), 12)
    columns = {
        f"field {place + 1}": [row[place] if place < len(row) else "" for row in fields]
        for place in range(widest)
    }
    return pd.DataFrame({**columns, "line": lines}, dtype=str)


def _vectors(data: bytes, suffix: str, rows: int) -> Iterator[pd.DataFrame]:
    """Yield bytes as arrays that have a value, a row or a bit for every test row."""
    arrays: list[np.ndarray] = []
    if suffix in {".npy", ".npz"}:
        try:
            loaded = np.load(io.BytesIO(data), allow_pickle=False)
            arrays += [loaded] if isinstance(loaded, np.ndarray) else list(loaded.values())
        except (ValueError, OSError, EOFError):
            pass
    arrays += _pixels(data, suffix)
    for dtype in _DTYPES:
        if len(data) == rows * np.dtype(dtype).itemsize:
            arrays.append(np.frombuffer(data, dtype))
    if len(data) == (rows + 7) // 8:
        bits = np.frombuffer(data, np.uint8)
        arrays += [np.unpackbits(bits, bitorder=order)[:rows] for order in ("big", "little")]
    text = data.strip()
    if len(text) == rows and b"\n" not in text:
        arrays.append(np.frombuffer(text, np.uint8))
    pieces = re.split(rb"[\s,;|]+", text, maxsplit=rows + 1)
    if len(pieces) == rows and rows > 1:
        yield pd.DataFrame({"pieces": [piece.decode("utf-8", "replace") for piece in pieces]})
    for array in arrays:
        if array.ndim in {1, 2} and rows in array.shape:
            flat = array if array.shape[0] == rows else array.T
            table = pd.DataFrame(flat.reshape(rows, -1)[:, :64])
            yield table.map(repr_plain).rename(columns=str)


def _pixels(data: bytes, suffix: str) -> Iterator[np.ndarray]:
    if suffix in IMAGES and len(data) < _MOST_IMAGE_BYTES:
        with suppress(OSError, ValueError, SyntaxError), Image.open(io.BytesIO(data)) as image:
            if image.width * image.height < _MOST_PIXELS:
                yield np.asarray(image.convert("L"))


def repr_plain(value: object) -> str:
    """Return a number as it would be written in a table."""
    return str(value.item() if isinstance(value, np.generic) else value)
