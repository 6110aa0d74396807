"""The strict reader refuses bombs and foreign formats, and reads honest tables."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import zipfile

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_server.grade.base import InvalidSubmissionError
from reward_server.grade.table import Caps, read_table

HONEST = b"id,target\na,0.25\nb,0.75\n"
CAPS = Caps.beside(HONEST, file_bytes=1 << 26)


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
    with pytest.raises(InvalidSubmissionError):
        read_table(data, CAPS)


def test_a_file_beyond_the_size_cap_is_refused() -> None:
    with pytest.raises(InvalidSubmissionError):
        read_table(HONEST, Caps.beside(HONEST, file_bytes=len(HONEST) - 1))


ACCEPTED = {
    "plain": HONEST,
    "a byte order mark": b"\xef\xbb\xbf" + HONEST,
    "Windows line ends": HONEST.replace(b"\n", b"\r\n"),
    "no final line end": HONEST.rstrip(),
    "quoted numbers": b'id,target\n"a","0.25"\n"b","0.75"\n',
    "blank lines": b"\n\nid,target\n\na,0.25\nb,0.75\n\n",
}


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_an_honest_table_is_read_whatever_its_line_ends_and_quotes(data: bytes) -> None:
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


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_arbitrary_bytes_are_a_table_or_refused(data: bytes) -> None:
    try:
        table = read_table(data, CAPS)
    except InvalidSubmissionError:
        return
    assert isinstance(table, pd.DataFrame)
