"""A strict reader for submissions.

It counts everything before it parses the table, so that refusing a bomb costs a few scans only.
The first two records give the width of the parsed table: pandas refuses any later record that
has more fields. Tables within the caps are read as MLE-bench reads them, except that a column
name may occur only once.
"""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from reward_server.tasks.sdk.tables import parse_csv

if TYPE_CHECKING:
    from collections.abc import Iterator

_BINARY_OPENINGS = (
    b"\x1f\x8b",  # gzip
    b"PK\x03\x04",  # zip
    b"PK\x05\x06",  # zip without members
    b"BZh",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",  # zstandard
    b"7z\xbc\xaf",
    b"\x80",  # pickle, protocol 2 and later
    b"PAR1",
    b"ARROW1",
    b"\x89HDF",
    b"\xff\xfe",  # UTF-16 and UTF-32
    b"\xfe\xff",
)
_LINE_FEED, _RETURN = 10, 13
_PIECE_BYTES = 1 << 20
_FREE_CELLS = 1 << 20


class InvalidSubmissionError(Exception):
    """The submission cannot be scored; the text stays inside the grading process."""


def require(claim: object, message: str) -> None:
    """Refuse the submission unless the claim holds.

    Raises:
        InvalidSubmissionError: when it does not.
    """
    if not claim:
        raise InvalidSubmissionError(message)


@dataclass(frozen=True, slots=True)
class Caps:
    """The limits beyond which a table is refused unread.

    Every line feed or return ends a line, also within quotes.
    """

    file_bytes: int
    lines: int
    columns: int
    cells: int
    line_bytes: int

    @classmethod
    def beside(cls, answers: bytes, file_bytes: int) -> Caps:
        """Return caps that allow a submission several times the size of its answers."""
        lines = _count_lines(answers)
        columns = answers[: answers.find(b"\n")].count(b",") + 1
        return cls(
            file_bytes=file_bytes,
            lines=4 * lines + 1000,
            columns=2 * columns + 64,
            cells=4 * lines * columns + _FREE_CELLS,
            line_bytes=max(1 << 16, 16 * _longest_line(answers)),
        )


def read_table(data: bytes, caps: Caps) -> pd.DataFrame:
    """Read comma-separated UTF-8 text.

    Raises:
        InvalidSubmissionError: for everything that is not a plain table within the caps.
    """
    if not data:
        return pd.DataFrame()
    _refuse_bombs(data, caps)
    _refuse_other_formats(data)
    try:
        _check_first_records(data, caps)
        return parse_csv(data)
    except (ValueError, csv.Error, OverflowError, MemoryError) as error:
        message = "the file is not a readable table"
        raise InvalidSubmissionError(message) from error


def _refuse_bombs(data: bytes, caps: Caps) -> None:
    require(len(data) <= caps.file_bytes, "the file is too large")
    require(_count_lines(data) <= caps.lines, "the table has too many rows")
    require(_longest_line(data) <= caps.line_bytes, "a line is too long")


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n") + 1


def _longest_line(data: bytes) -> int:
    longest = last = 0
    for start, piece in _pieces(data):
        octets = np.frombuffer(piece, np.uint8)
        ends = start + np.flatnonzero((octets == _LINE_FEED) | (octets == _RETURN))
        if ends.size:
            longest = max(longest, int(ends[0]) - last, int(np.diff(ends).max(initial=0)) - 1)
            last = int(ends[-1]) + 1
    return max(longest, len(data) - last)


def _refuse_other_formats(data: bytes) -> None:
    require(not data.startswith(_BINARY_OPENINGS), "the file is not plain text")
    require(b"\0" not in data, "the file contains NUL bytes")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for _, piece in _pieces(data):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        message = "the file is not UTF-8"
        raise InvalidSubmissionError(message) from error


def _pieces(data: bytes) -> Iterator[tuple[int, memoryview]]:
    """Yield the data in pieces with their offsets, so that no scan copies all of it."""
    view = memoryview(data)
    for start in range(0, len(data), _PIECE_BYTES):
        yield start, view[start : start + _PIECE_BYTES]


def _check_first_records(data: bytes, caps: Caps) -> None:
    records = _records(data)
    header, first = next(records, []), next(records, [])
    columns = max(len(header), len(first))
    require(columns <= caps.columns, "the table has too many columns")
    require(columns * _count_lines(data) <= caps.cells, "the table has too many cells")
    names = [name for name in header if name]
    require(len(names) == len(set(names)), "a column name stands twice")


def _records(data: bytes) -> Iterator[list[str]]:
    """Yield the fields of every record but the blank ones, separated as pandas does it."""
    csv.field_size_limit(max(csv.field_size_limit(), len(data)))
    for record in csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")):
        if len(record) > 1 or any(name.strip(" \t") for name in record):
            yield record
