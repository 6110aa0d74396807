"""An index of the data files that a sandbox's environment ships: columns, texts and images.

Programs can read everything the environment holds, so test data of packages counts too.
Compiled code and Python files are not read, nor are formats that need a library of their own.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

_TABLES = {".csv", ".tsv", ".txt", ".dat", ".data", ".tab", ".arff", ".json", ".jsonl", ".asc"}
_ARRAYS = {".npy", ".npz"}
_IMAGES = {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff"}
_MOST_FILE_BYTES = 24 << 20
_MOST_SECONDS = 30.0
_MOST_COLUMNS = 80
_LONG_TEXT = 30
_FEWEST_ROWS = 10
_FEW_VALUES = 8
_RUN = 8
_STEP = 4
_FIELDS = re.compile(r"[,;\t ]+")
_EXPONENT = re.compile(r"-?\d(\.\d+)?e[+-]\d\d")
_DIGIT = re.compile(r"\d")
_NOT_WORDS = re.compile(r"[\W_]+")

Rows = list[list[str]]


@dataclass(frozen=True, slots=True)
class Shipped:
    """What the data files of an environment hold; columns are found by the hashes of values."""

    files: tuple[Path, ...]
    hashes: np.ndarray
    columns: np.ndarray
    places: tuple[tuple[int, int], ...]
    runs: frozenset[int]
    texts: frozenset[int]
    images: frozenset[str]
    is_part: bool

    def columns_with(self, values: Iterable[str]) -> dict[tuple[int, int], float]:
        """Return the columns (file, number) that hold the values, with the share they hold."""
        wanted = np.unique(np.array([hash(value) for value in values], dtype=np.int64))
        starts = np.searchsorted(self.hashes, wanted, "left")
        ends = np.searchsorted(self.hashes, wanted, "right")
        runs = [self.columns[a:b] for a, b in zip(starts, ends, strict=True) if a < b]
        if not runs:
            return {}
        counts = np.bincount(np.concatenate(runs)) / len(wanted)
        return {self.places[column]: float(counts[column]) for column in np.flatnonzero(counts)}


@lru_cache(maxsize=2)
def index_environment(environment: Path) -> Shipped:
    """Read the data files of an environment, within a bounded time."""
    files: list[Path] = []
    hashes: list[np.ndarray] = []
    places: list[tuple[int, int]] = []
    texts: set[int] = set()
    images: set[str] = set()
    runs: set[int] = set()
    deadline = time.process_time() + _MOST_SECONDS
    for path in _data_files(environment):
        if time.process_time() > deadline:
            break
        if path.suffix.lower() in _IMAGES:
            images.add(hashlib.sha256(path.read_bytes()).hexdigest())
            continue
        lines = _read_lines(path)
        texts |= {hash(text) for line in lines for text in long_texts((line, *line.split(",")))}
        fitting = _fitting(_from_lines(lines) if lines else read_rows(path))
        if fitting and len(fitting[0]) >= _RUN:
            runs |= {run for row in fitting for run in runs_of(row, _STEP)}
        for number, values in enumerate(zip(*fitting, strict=True)):
            distinct = set(values)
            if is_fine(distinct):
                hashes.append(np.array([hash(value) for value in distinct], dtype=np.int64))
                places.append((len(files), number))
        files.append(path)
    owners = np.repeat(np.arange(len(hashes)), [len(part) for part in hashes])
    together = np.concatenate(hashes) if hashes else np.zeros(0, np.int64)
    order = np.argsort(together, kind="stable")
    return Shipped(
        tuple(files),
        together[order],
        owners[order],
        tuple(places),
        frozenset(runs),
        frozenset(texts),
        frozenset(images),
        is_part=time.process_time() > deadline,
    )


@lru_cache(maxsize=1 << 17)
def plain_value(value: str) -> str:
    """Return a value so that equal numbers are equal texts."""
    text = value.strip().strip("\"'").lower()
    if text[:1] == "+":
        text = text[1:]
    if _EXPONENT.fullmatch(text):
        text = f"{float(text):.12f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text[1:] if text.startswith("0.") else text.replace("-0.", "-.", 1)


def is_fine(distinct: Collection[str]) -> bool:
    """Tell whether a column's values would not be found in any other column of numbers."""
    if len(distinct) < _FEW_VALUES:
        return False
    wholes = [int(value) for value in distinct if value.isdecimal()]
    return len(wholes) < 0.9 * len(distinct) or max(wholes) - min(wholes) > 10 * len(wholes)


def runs_of(row: list[str], step: int = 1) -> Iterator[int]:
    """Yield hashes of a row's runs of fields; a run of nearly equal ones tells nothing."""
    for start in range(0, len(row) - _RUN + 1, step):
        run = tuple(row[start : start + _RUN])
        if len(set(run)) >= _RUN // 2:
            yield hash(run)


def plain_text(text: str) -> str:
    """Return a text by its words alone."""
    return _NOT_WORDS.sub(" ", text.lower()).strip()


def long_texts(fields: Iterable[str]) -> Iterator[str]:
    """Yield the texts among fields that are long enough to be told from others."""
    for field in fields:
        if len(field) >= _LONG_TEXT and " " in field and not _DIGIT.search(field, 0, _LONG_TEXT):
            yield plain_text(field)


def read_rows(path: Path) -> Rows:
    """Return the rows of a data file as fields; nothing when it cannot be read."""
    if path.suffix not in _ARRAYS:
        return _from_lines(_read_lines(path))
    try:
        return _from_arrays(path.read_bytes())
    except (OSError, ValueError, EOFError):
        return []


def _read_lines(path: Path) -> list[str]:
    if path.suffix in _ARRAYS:
        return []
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = zlib.decompressobj(wbits=31).decompress(data, _MOST_FILE_BYTES)
    except (OSError, zlib.error):
        return []
    return data.decode("utf-8", errors="replace").splitlines()


def _from_lines(lines: list[str]) -> Rows:
    return [_split(line) for line in lines]


def _split(line: str) -> list[str]:
    if "," in line:
        return [plain_value(field) for field in line.split(",")]
    if "\t" in line:
        return [plain_value(field) for field in line.split("\t")]
    if len(line) > 4 * _LONG_TEXT and not any(letter.isdigit() for letter in line[:20]):
        return [line]
    return [plain_value(field) for field in _FIELDS.split(line.strip())]


def _from_arrays(data: bytes) -> Rows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
    arrays = [loaded] if isinstance(loaded, np.ndarray) else [loaded[name] for name in loaded]
    tables = [array for array in arrays if array.ndim == 2 and array.size < 2_000_000]
    widest = max(tables, key=lambda array: array.size, default=np.zeros((0, 0)))
    return [[plain_value(repr(value)) for value in row] for row in widest.tolist()]


def _fitting(rows: Rows) -> Rows:
    """Return the rows that have as many fields as most."""
    if len(rows) < _FEWEST_ROWS:
        return []
    common = Counter(map(len, rows)).most_common(1)[0][0]
    return [row[:_MOST_COLUMNS] for row in rows if len(row) == common]


def _data_files(environment: Path) -> Iterator[Path]:
    for path in sorted(environment.glob("lib/python*/site-packages/**/*")):
        name = path.suffixes[-2:-1] if path.suffix == ".gz" else [path.suffix]
        kind = name[0].lower() if name else ""
        is_data = kind in _TABLES | _ARRAYS | _IMAGES and ".dist-info" not in path.as_posix()
        if is_data and path.is_file() and 0 < path.stat().st_size <= _MOST_FILE_BYTES:
            yield path
