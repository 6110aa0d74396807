"""Files of solutions: lines of JSON, plain or compressed, or Parquet; chosen by the name."""

from __future__ import annotations

import gzip
import json
import os
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from sqlalchemy import ARRAY, Boolean, DateTime, Double, Text, Uuid

from reward_server.errors import SetupError
from reward_server.store.solutions.records import MalformedRecordError
from reward_server.store.tables import solutions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Column

    from reward_server.store.solutions.records import Record

    Write = Callable[[Sequence[Record]], object]

_PAGE = 500
_SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")


def check_name(path: Path) -> None:
    """Refuse a file name without a known suffix.

    Raises:
        SetupError: the text names the known suffixes.
    """
    if not path.name.endswith(_SUFFIXES):
        message = f"the name of {path} must end with one of: {', '.join(_SUFFIXES)}"
        raise SetupError(message)
    if path.name.endswith(".parquet"):
        _pyarrow()


@contextmanager
def writing(path: Path) -> Iterator[Write]:
    """Write records to a file that appears only when it is complete."""
    part = path.with_name(f".{path.name}.part")
    opened = _parquet_writer if path.name.endswith(".parquet") else _line_writer
    try:
        with opened(part, path.name) as write:
            yield write
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _line_writer(part: Path, name: str) -> Iterator[Write]:
    with part.open("wb") as raw:
        file: Any = gzip.GzipFile(fileobj=raw, mode="wb") if name.endswith(".gz") else raw

        def write(records: Sequence[Record]) -> None:
            file.write("".join(json.dumps(record) + "\n" for record in records).encode())

        yield write
        if file is not raw:
            file.close()
        _flush_to_disk(raw)


def _flush_to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _parquet_writer(part: Path, _: str) -> Iterator[Write]:
    arrow = _pyarrow()
    schema = _schema(arrow)
    time_columns = [column.name for column in solutions.c if isinstance(column.type, DateTime)]

    def parse_times(record: Record) -> Record:
        return record | {name: datetime.fromisoformat(record[name]) for name in time_columns}

    with part.open("wb") as raw, arrow.parquet.ParquetWriter(raw, schema) as writer:

        def write(records: Sequence[Record]) -> None:
            rows = [parse_times(record) for record in records]
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))

        yield write
        writer.close()
        _flush_to_disk(raw)


def _schema(arrow: Any) -> Any:  # noqa: ANN401 - an optional package
    reward = {"scheme": arrow.string(), "scheme_version": arrow.int64(), "value": arrow.float64()}
    fields = [(column.name, _kind(column, arrow)) for column in solutions.c]
    return arrow.schema([*fields, ("rewards", arrow.list_(arrow.struct(reward)))])


def _kind(column: Column[Any], arrow: Any) -> Any:  # noqa: ANN401
    match column.type:
        case Uuid() | Text():
            return arrow.string()
        case DateTime():
            return arrow.timestamp("us", tz="UTC")
        case Boolean():
            return arrow.bool_()
        case Double():
            return arrow.float64()
        case ARRAY():
            return arrow.list_(arrow.int64())
        case _:
            return arrow.int64()


def reading(path: Path) -> Iterator[list[Record]]:
    """Return the records of a file, a page at a time.

    Raises:
        MalformedRecordError: when the content does not have the format of the suffix.
        OSError: when the file cannot be read.
    """
    return _read_parquet(path) if path.name.endswith(".parquet") else _read_lines(path)


def _read_lines(path: Path) -> Iterator[list[Record]]:
    page: list[Record] = []
    opened: Any = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rb") as file:
        try:
            for number, line in enumerate(file, 1):
                if line.strip():
                    page.append(_parse(line, number))
                if len(page) == _PAGE:
                    yield page
                    page = []
        except (gzip.BadGzipFile, EOFError) as error:
            message = f"{path} is damaged: {error}"
            raise MalformedRecordError(message) from error
    if page:
        yield page


def _parse(line: bytes, number: int) -> Record:
    try:
        record: Record = json.loads(line)
    except (ValueError, RecursionError) as error:
        message = f"line {number} is not JSON: {error}"
        raise MalformedRecordError(message) from None
    return record


def _read_parquet(path: Path) -> Iterator[list[Record]]:
    arrow = _pyarrow()
    try:
        with arrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PAGE):
                yield batch.to_pylist()
    except arrow.ArrowException as error:
        message = f"{path} is not a Parquet file of solutions: {error}"
        raise MalformedRecordError(message) from error


def _pyarrow() -> Any:  # noqa: ANN401
    try:
        import_module("pyarrow.parquet")
    except ImportError:
        message = "Parquet needs pyarrow: pip install 'reward-server[parquet]', or use .jsonl.gz"
        raise SetupError(message) from None
    return import_module("pyarrow")
