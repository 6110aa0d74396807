"""A strict reader for the one file a program leaves behind.

Everything is counted on the raw bytes before a parser sees them, so that a bomb is refused
at the price of a few scans. What passes is read the way MLE-bench reads it, except that a
column name may stand only once.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

import pandas as pd

from reward_server.grade.base import InvalidSubmissionError
from reward_server.tasks.tables import parse_csv

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
_QUOTED = re.compile(rb'"[^"]*"')


@dataclass(frozen=True, slots=True)
class Caps:
    """How large a table may be before it is refused unread."""

    file_bytes: int
    lines: int
    columns: int
    line_bytes: int

    @classmethod
    def beside(cls, answers: bytes, file_bytes: int) -> Caps:
        """Return caps that leave a submission several times the room its answers take."""
        lines = answers.splitlines()
        header_columns = lines[0].count(b",") + 1 if lines else 1
        longest = max(map(len, lines), default=0)
        return cls(
            file_bytes=file_bytes,
            lines=4 * len(lines) + 1000,
            columns=2 * header_columns + 64,
            line_bytes=max(1 << 16, 16 * longest),
        )


def read_table(data: bytes, caps: Caps) -> pd.DataFrame:
    """Read comma-separated UTF-8 text.

    Raises:
        InvalidSubmissionError: for everything that is not a plain table within the caps.
    """
    if not data:
        return pd.DataFrame()
    _refuse_bombs(data, caps)
    text = _decode(data)
    try:
        _refuse_repeated_columns(text)
        return parse_csv(data)
    except (ValueError, csv.Error, OverflowError, MemoryError) as error:
        message = "the file is not a readable table"
        raise InvalidSubmissionError(message) from error


def _refuse_bombs(data: bytes, caps: Caps) -> None:
    _require(len(data) <= caps.file_bytes, "the file is too large")
    line_ends = data.count(b"\n") + data.count(b"\r")
    _require(line_ends <= 2 * caps.lines, "the table has too many rows")
    lines = data.splitlines()
    _require(len(lines) <= caps.lines, "the table has too many rows")
    _require(max(map(len, lines)) <= caps.line_bytes, "a line is too long")
    wide = (line for line in lines if line.count(b",") >= caps.columns)
    widest = max((_QUOTED.sub(b"", line).count(b",") for line in wide), default=0)
    _require(widest < caps.columns, "the table has too many columns")


def _decode(data: bytes) -> str:
    _require(not data.startswith(_BINARY_OPENINGS), "the file is not plain text")
    _require(b"\0" not in data, "the file contains NUL bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = "the file is not UTF-8"
        raise InvalidSubmissionError(message) from error


def _refuse_repeated_columns(text: str) -> None:
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    header = next((row for row in rows if any(name.strip() for name in row)), [])
    names = [name for name in header if name]
    _require(len(names) == len(set(names)), "a column name stands twice")


def _require(claim: bool, message: str) -> None:  # noqa: FBT001
    if not claim:
        raise InvalidSubmissionError(message)
