"""Is the data of a task in a package that every program of the sandbox can import?

The data files of the environment are indexed by hashes of their columns, runs of fields, texts
and images; test data of packages counts too. A table whose columns are in one bundled file is
compared with it row by row. The lint does not recognise data that was rescaled on the way, and
does not read compiled code, Python files or formats that need a library of their own.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
import warnings
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.leaks.evidence import read_written
from reward_server.tasks.leaks.public_files import IMAGES, files_below
from reward_server.tasks.leaks.report import LeakCheck, LeakFinding, LeakKind, unchecked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    import pandas as pd

    from reward_server.tasks.base import Card

_NAME = "data that the sandbox ships"
_TABLES = {".csv", ".tsv", ".txt", ".dat", ".data", ".tab", ".arff", ".json", ".jsonl", ".asc"}
_ARRAYS = {".npy", ".npz"}
_MOST_FILE_BYTES = 24 << 20
_MOST_SECONDS = 30.0
_MOST_COLUMNS = 80
_MOST_ROWS = 400
_MOST_IMAGES = 5_000
_LONG_TEXT = 30
_FEWEST_ROWS = 10
_FEWEST_VALUES = 8
_FEWEST_TEXTS = 5
_RUN = 8
_STEP = 4
_HELD = 0.7
_SAME_ROWS = 0.5
_SAME_TEXTS = 0.02
_FIELDS = re.compile(r"[,;\t ]+")
_EXPONENT = re.compile(r"-?\d(\.\d+)?e[+-]\d\d")
_DIGIT = re.compile(r"\d")
_NOT_WORDS = re.compile(r"[\W_]+")

Rows = list[list[str]]


def check_bundled(card: Card, public: Path, answers: Path, environment: Path | None) -> LeakCheck:
    """Compare the tables and images of a task with the files of the sandbox's environment."""
    if environment is None or not environment.is_dir():
        text = "the lint does not check the contents of a container image"
        if environment is not None:
            text = "the sandbox has no environment to check"
        return LeakCheck(_NAME, "nothing", (unchecked("the sandbox", text),))
    shipped = _index_environment(environment.resolve())
    findings = [*_find_tables(card, public, answers, shipped), *_find_images(public, shipped)]
    part = ", as far as time allowed" if shipped.is_part else ""
    count = len(shipped.files) + len(shipped.images)
    return LeakCheck(_NAME, f"{count} data files of the environment{part}", tuple(findings))


def _find_tables(
    card: Card, public: Path, answers: Path, shipped: ShippedData
) -> Iterator[LeakFinding]:
    paths = {"the answers": answers}
    if card.target is not None:
        paths |= {name: public / name for name in (card.target.train_file, card.target.test_file)}
    for place, path in paths.items():
        try:
            table = read_written(path, _MOST_ROWS).table
        except (OSError, ValueError):
            continue
        yield from _find_rows(place, table, shipped)
        yield from _find_texts(place, table, shipped)


def _find_rows(place: str, table: pd.DataFrame, shipped: ShippedData) -> Iterator[LeakFinding]:
    plain = {str(name): [_plain_value(value) for value in table[name]] for name in table}
    share = _same_runs(plain, shipped)
    if share >= _SAME_ROWS:
        text = "runs of its columns are in files that the sandbox ships"
        yield LeakFinding(LeakKind.BUNDLED, place, text, f"{share:.0%} of the compared rows")
        return
    held: dict[int, list[tuple[float, str, int]]] = defaultdict(list)
    for name, values in plain.items():
        known = {value for value in values if value}
        if _is_fine(known):
            for (file, column), part in shipped.columns_with(known).items():
                if part >= _HELD:
                    held[file].append((part, name, column))
    for file, columns in held.items():
        share = _same_rows(columns, plain, _read_rows(shipped.files[file]))
        if share >= _SAME_ROWS:
            where = "/".join(shipped.files[file].parts[-4:])
            text = f"its rows are in {where}, which the sandbox ships"
            yield LeakFinding(LeakKind.BUNDLED, place, text, f"{share:.0%} of the compared rows")
            return


def _same_runs(plain: dict[str, list[str]], shipped: ShippedData) -> float:
    """Return the share of rows of which a run of fields is shipped, and not by chance."""
    columns = list(plain.values())
    same, by_chance = (
        np.array([_held_runs(list(row), shipped) for row in zip(*part, strict=True)])
        for part in (columns, _mixed(columns))
    )
    return float(np.mean(same > 0)) if same.mean() > 3 * by_chance.mean() else 0.0


def _held_runs(row: list[str], shipped: ShippedData) -> int:
    return sum(run in shipped.runs for run in _runs_of(row))


def _mixed(columns: list[list[str]]) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [[values[i] for i in rng.permutation(len(values))] for values in columns]


def _same_rows(
    columns: list[tuple[float, str, int]], plain: dict[str, list[str]], rows: list[list[str]]
) -> float:
    """Return the share of rows that the file holds and would not hold were columns shuffled."""
    pairs = {name: column for _, name, column in sorted(columns)}
    pairs = {name: column for column, name in {c: n for n, c in pairs.items()}.items()}
    if len(pairs) < 2:
        return _same_measures(next(iter(pairs)), plain) if pairs else 0.0
    last = max(pairs.values())
    known = {tuple(row[c] for c in pairs.values()) for row in rows if len(row) > last}
    wanted = [plain[name] for name in pairs]
    same, by_chance = (
        float(np.mean([row in known for row in zip(*part, strict=True)]))
        for part in (wanted, _mixed(wanted))
    )
    return same if same > 3 * by_chance else 0.0


def _same_measures(name: str, plain: dict[str, list[str]]) -> float:
    """Return 1 for a single column of numbers so fine that no other data would have them."""
    values = {value for value in plain[name] if value}
    fine = [value for value in values if len(value.partition(".")[2]) >= 3]
    return 1.0 if len(fine) >= 50 and len(fine) > 0.8 * len(values) else 0.0


def _find_texts(place: str, table: pd.DataFrame, shipped: ShippedData) -> Iterator[LeakFinding]:
    texts = [text for name in table for text in _long_texts(table[name])]
    hits = sum(hash(text) in shipped.texts for text in texts)
    if hits >= _FEWEST_TEXTS and hits >= _SAME_TEXTS * len(texts):
        strength = f"{hits} of {len(texts)} compared texts"
        text = "its texts are in a file that the sandbox ships"
        yield LeakFinding(LeakKind.BUNDLED, place, text, strength)


def _find_images(public: Path, shipped: ShippedData) -> Iterator[LeakFinding]:
    images = [file for file in files_below(public) if file.suffix in IMAGES][:_MOST_IMAGES]
    for file in images:
        if hashlib.sha256(file.read()).hexdigest() in shipped.images:
            text = "it is an image that the sandbox ships"
            yield LeakFinding(LeakKind.BUNDLED, file.name, text)
            return


@dataclass(frozen=True, slots=True)
class ShippedData:
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
def _index_environment(environment: Path) -> ShippedData:
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
        if path.suffix.lower() in IMAGES:
            images.add(hashlib.sha256(path.read_bytes()).hexdigest())
            continue
        lines = _read_lines(path)
        texts |= {hash(text) for line in lines for text in _long_texts((line, *line.split(",")))}
        fitting = _fitting([_split(line) for line in lines] if lines else _read_rows(path))
        if fitting and len(fitting[0]) >= _RUN:
            runs |= {run for row in fitting for run in _runs_of(row, _STEP)}
        for number, values in enumerate(zip(*fitting, strict=True)):
            distinct = set(values)
            if _is_fine(distinct):
                hashes.append(np.array([hash(value) for value in distinct], dtype=np.int64))
                places.append((len(files), number))
        files.append(path)
    owners = np.repeat(np.arange(len(hashes)), [len(part) for part in hashes])
    together = np.concatenate(hashes) if hashes else np.zeros(0, np.int64)
    order = np.argsort(together, kind="stable")
    return ShippedData(
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
def _plain_value(value: str) -> str:
    """Return a value so that equal numbers are equal texts."""
    text = value.strip().strip("\"'").lower()
    if text[:1] == "+":
        text = text[1:]
    if _EXPONENT.fullmatch(text):
        text = f"{float(text):.12f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text[1:] if text.startswith("0.") else text.replace("-0.", "-.", 1)


def _is_fine(distinct: Collection[str]) -> bool:
    """Tell whether a column's values would not be found in any other column of numbers."""
    if len(distinct) < _FEWEST_VALUES:
        return False
    wholes = [int(value) for value in distinct if value.isdecimal()]
    return len(wholes) < 0.9 * len(distinct) or max(wholes) - min(wholes) > 10 * len(wholes)


def _runs_of(row: list[str], step: int = 1) -> Iterator[int]:
    """Yield hashes of a row's runs of fields; a run of nearly equal ones proves nothing."""
    for start in range(0, len(row) - _RUN + 1, step):
        run = tuple(row[start : start + _RUN])
        if len(set(run)) >= _RUN // 2:
            yield hash(run)


def _long_texts(fields: Iterable[str]) -> Iterator[str]:
    """Yield the texts among fields that are long enough to be recognised."""
    for field in fields:
        if len(field) >= _LONG_TEXT and " " in field and not _DIGIT.search(field, 0, _LONG_TEXT):
            yield _NOT_WORDS.sub(" ", field.lower()).strip()


def _read_rows(path: Path) -> Rows:
    """Return the rows of a data file as fields; nothing when it cannot be read."""
    if path.suffix not in _ARRAYS:
        return [_split(line) for line in _read_lines(path)]
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


def _split(line: str) -> list[str]:
    for separator in (",", "\t"):
        if separator in line:
            return [_plain_value(field) for field in line.split(separator)]
    if len(line) > 4 * _LONG_TEXT and not any(letter.isdigit() for letter in line[:20]):
        return [line]
    return [_plain_value(field) for field in _FIELDS.split(line.strip())]


def _from_arrays(data: bytes) -> Rows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
    arrays = [loaded] if isinstance(loaded, np.ndarray) else [loaded[name] for name in loaded]
    tables = [array for array in arrays if array.ndim == 2 and array.size < 2_000_000]
    widest = max(tables, key=lambda array: array.size, default=np.zeros((0, 0)))
    return [[_plain_value(repr(value)) for value in row] for row in widest.tolist()]


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
        is_data = kind in _TABLES | _ARRAYS | IMAGES and ".dist-info" not in path.as_posix()
        if is_data and path.is_file() and 0 < path.stat().st_size <= _MOST_FILE_BYTES:
            yield path
