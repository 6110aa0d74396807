"""The strict reader refuses bombs and foreign formats, and reads honest tables."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import tracemalloc
import zipfile

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.tasks.sdk.submission_table import Caps, InvalidSubmissionError, read_table

FILE_BYTES = 1 << 26
HONEST = b"id,target\na,0.25\nb,0.75\n"
CAPS = Caps.beside(HONEST, FILE_BYTES)
WIDE = Caps.beside(HONEST * 10_000, FILE_BYTES)  # beside as many rows as a large task has


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("submission.csv", data)
    return buffer.getvalue()


REFUSED = {
    "a line of many megabytes": b"id,target\n" + b"a" * (50 << 20),
    "a million columns": b",".join(b"c%d" % i for i in range(10**6)),
    "a million columns in the first row": b"id,target\n" + b"1," * 10**6,
    "columns just beyond the cap": b",".join(b"c%d" % i for i in range(200)) + b"\n",
    "ten million rows": b"id,target\n" + b"a,1\n" * 10**7,
    "ten million old Mac rows": b"id,target\r" + b"a,1\r" * 10**7,
    "a pickle": pickle.dumps(pd.DataFrame({"id": ["a"], "target": [0.5]})),
    "gzip": gzip.compress(HONEST),
    "bzip2": bz2.compress(HONEST),
    "xz": lzma.compress(HONEST),
    "zip": zipped(HONEST),
    "parquet": b"PAR1" + HONEST + b"PAR1",
    "sixty-four million line ends": b"\n" * FILE_BYTES,
    "only commas": b"," * FILE_BYTES,
    "only quotes": b'"' * FILE_BYTES,
    "short lines of commas": b"id,target\n" + (b"," * 60_000 + b"\n") * 900,
    "commas behind a quote that opens nothing": b"id,target\n" + b'x"' + b"," * 60_000,
    "a header of commas between quoted line ends": (b'"\n",' + b"," * 60_000) * 100,
    "a wide row below a narrow one": b"id,target\na,1\n" + b"," * 1000 + b"\n",
    "rows too short for their many columns": b",".join(b"c%d" % i for i in range(60))
    + b"\n1" * 100_000,
    "UTF-16": HONEST.decode().encode("utf-16"),
    "UTF-16 without a mark": HONEST.decode().encode("utf-16-le"),
    "Latin-1": "id,target\né,1\n".encode("latin-1"),
    "NUL bytes": b"id,target\na,1\0\n",
    "a column name twice": b"id,target,target\na,1,1\n",
    "a quoted column name twice": b'id,target,"target"\na,1,1\n',
    "an open quote": b'id,target\n"a,1\n',
    "ragged rows": b"id,target\na,1\nb,1,2,3,4\n",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_a_bomb_or_a_foreign_format_is_refused(data: bytes) -> None:
    for caps in (CAPS, WIDE):
        with pytest.raises(InvalidSubmissionError):
            read_table(data, caps)


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_takes_little_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidSubmissionError):
            read_table(data, WIDE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(data) + (64 << 20)


def test_a_file_beyond_the_size_cap_is_refused() -> None:
    with pytest.raises(InvalidSubmissionError):
        read_table(HONEST, Caps.beside(HONEST, file_bytes=len(HONEST) - 1))


ACCEPTED = {
    "plain": HONEST,
    "a byte order mark": b"\xef\xbb\xbf" + HONEST,
    "Windows line ends": HONEST.replace(b"\n", b"\r\n"),
    "no final line end": HONEST.rstrip(),
    "quoted numbers": b'id,target\n"a","0.25"\n"b","0.75"\n',
    "old Mac line ends": HONEST.replace(b"\n", b"\r"),
    "doubled returns": HONEST.replace(b"\n", b"\r\r\n"),
    "spaces alone in a line": b" \t\n" + HONEST,
    "blank lines": b"\n\nid,target\n\na,0.25\nb,0.75\n\n",
}


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_table_is_read_with_any_line_ends_and_quotes(data: bytes) -> None:
    table = read_table(data, CAPS)
    assert list(table.columns) == ["id", "target"]
    assert table["id"].tolist() == ["a", "b"]
    assert table["target"].tolist() == [0.25, 0.75]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"   \n"])
def test_an_empty_file_is_a_table_without_rows(data: bytes) -> None:
    assert read_table(data, CAPS).shape[0] == 0


def test_floats_are_read_exactly_as_they_are_written() -> None:
    value = 0.1234567890123456789
    assert read_table(f"id,target\na,{value!r}\n".encode(), CAPS)["target"].tolist() == [value]


def test_text_with_many_quoted_commas_is_one_cell() -> None:
    text = "," * 500
    assert read_table(f'id,target\na,"{text}"\n'.encode(), CAPS)["target"].tolist() == [text]


def test_commas_in_a_multiline_text_are_not_columns() -> None:
    text = "first, line\n" + "," * 500 + "\r\nlast"
    assert read_table(f'id,target\na,"{text}"\n'.encode(), CAPS)["target"].tolist() == [text]


def test_a_text_longer_than_the_csv_modules_own_limit_is_one_cell() -> None:
    text = "\n".join(["a" * 1000] * 300)
    assert read_table(f'id,target\na,"{text}"\n'.encode(), CAPS)["target"].tolist() == [text]


def test_a_letter_across_two_chunks_is_decoded() -> None:
    lines = [f"{'a' * shift}é" for shift in range(4)] * 400_000
    data = ("id\n" + "\n".join(lines) + "\n").encode()
    assert read_table(data, Caps.beside(data, FILE_BYTES))["id"].tolist() == lines


def test_caps_count_the_lines_of_the_answers_and_measure_the_longest() -> None:
    answers = b"id,a,b\r\n1,2,3\r\n" + b"x" * 100_000 + b"\r4\n"
    caps = Caps.beside(answers, 7)
    assert (caps.file_bytes, caps.lines, caps.columns) == (7, 4 * 5 + 1000, 2 * 3 + 64)
    assert caps.line_bytes == 1_600_000
    across_pieces = b"x" * 10 + b"\n" + b"y" * (3 << 20) + b"\n" + b"z" * 20
    assert Caps.beside(across_pieces, 7).line_bytes == 16 * (3 << 20)


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_arbitrary_bytes_are_a_table_or_refused(data: bytes) -> None:
    try:
        table = read_table(data, CAPS)
    except InvalidSubmissionError:
        return
    assert isinstance(table, pd.DataFrame)


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1", "18446744073709551616"], ["1", "18446744073709551616"]),
        (["18446744073709551616", "x", "NA", "''"], ["18446744073709551616", "x", None, "''"]),
        (["-9223372036854775809", "x", "null"], ["-9223372036854775809", "x", None]),
        (["9223372036854775808", "1"], [9223372036854775808, 1]),
    ],
)
def test_numbers_beyond_64_bits_are_text_and_hide_no_gaps(
    cells: list[str], read: list[object]
) -> None:
    lines = "".join(f"{number},{cell}\n" for number, cell in enumerate(cells))
    table = read_table(f"id,target\n{lines}".encode(), CAPS)
    assert [None if pd.isna(value) else value for value in table["target"]] == read
