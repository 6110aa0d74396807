"""How a data file begins, in several lengths: a table, records, pictures, or plain lines.

Each preview is a tuple of texts from the shortest to the richest. A file that is not what its
name says is shown as lines, and as its size alone if it is not text.
"""

from __future__ import annotations

import io
import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd
from PIL import Image

from reward_server.tasks.briefing.columns import describe_columns
from reward_server.tasks.briefing.public_files import (
    HEAD_BYTES,
    count_records,
    first_records,
    read_head,
)
from reward_server.tasks.briefing.wording import count_of, fenced, name_of, plain, size_of

if TYPE_CHECKING:
    from pathlib import Path

    from reward_server.tasks.base import Card, Target
    from reward_server.tasks.briefing.public_files import FileGroup

Preview: TypeAlias = tuple[str, ...]

_TABLES = {".csv": ",", ".tsv": "\t"}
_PICTURES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff"})
_ARCHIVES = frozenset({".zip", ".gz", ".7z", ".tar", ".bz2", ".xz"})
_LENGTHS = ((3, 0), (8, 0), (8, 2), (20, 2), (40, 3), (80, 3), (400, 5))
_LINE_CHARACTERS, _CELL_CHARACTERS = 240, 60
_RECORDS_BYTES = 64 << 20
_SAMPLED_PICTURES = 24


def preview(card: Card, public: Path, group: FileGroup) -> Preview:
    """Return the previews of a file, or of the first of many; none for an archive."""
    path = public / group.paths[0]
    suffix = path.suffix.lower()
    if suffix in _ARCHIVES or not path.is_file():
        return ()
    try:
        if suffix in _TABLES:
            return _preview_table(card, path, group)
        if suffix == ".json" and group.size <= _RECORDS_BYTES and not group.is_pattern:
            return _preview_records(card, path, group)
        if suffix in _PICTURES:
            return _preview_pictures(public, group)
    except (ValueError, TypeError, OverflowError, RecursionError, pd.errors.ParserError):
        pass  # not what its name says
    return _preview_lines(path, group)


def _preview_table(card: Card, path: Path, group: FileGroup) -> Preview:
    head, separator = read_head(path), _TABLES[path.suffix.lower()]
    is_whole = len(head) < HEAD_BYTES
    table = pd.read_csv(
        io.BytesIO(head if is_whole else _complete_lines(head)),
        sep=separator,
        encoding="utf-8",
        encoding_errors="replace",
        on_bad_lines="skip",
        low_memory=False,
    )
    rows = len(table) if is_whole else count_records(path) - 1
    return _lengthen(card, group, table, rows, first_records(head[: 1 << 16], 6)[1:])


def _complete_lines(head: bytes) -> bytes:
    """Return a head without its last, unfinished line; quoted line ends do not count."""
    end = len(head)
    for _ in range(1000):
        end = head.rfind(b"\n", 0, end)
        if end < 0 or head.count(b'"', 0, end) % 2 == 0:
            break
    return head[: end + 1]


def _preview_records(card: Card, path: Path, group: FileGroup) -> Preview:
    records = json.loads(read_head(path, _RECORDS_BYTES))
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        message = "not a list of records"
        raise TypeError(message)
    table = pd.DataFrame({name: _scalars(records, name) for name in dict.fromkeys(_keys(records))})
    lines = [json.dumps(_short(record), ensure_ascii=False) for record in records[:5]]
    return _lengthen(card, group, table, len(records), lines)


def _keys(records: list[dict[str, Any]]) -> list[str]:
    return list(itertools.chain.from_iterable(records))


def _scalars(records: list[dict[str, Any]], name: str) -> list[object]:
    values = (record.get(name) for record in records)
    return [json.dumps(value) if isinstance(value, list | dict) else value for value in values]


def _short(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: plain(value if isinstance(value, str) else json.dumps(value), _CELL_CHARACTERS)
        if isinstance(value, str | list | dict)
        else value
        for name, value in record.items()
    }


def _lengthen(
    card: Card, group: FileGroup, table: pd.DataFrame, rows: int, lines: list[str]
) -> Preview:
    target = card.target
    is_train = target is not None and group.name == target.train_file
    wanted = _to_predict(target, table) if target and is_train else ()
    title = f"{name_of(group.name)}: {count_of(rows, 'row')}, {count_of(table.shape[1], 'column')}"
    about = "" if len(table) >= rows else f" (columns as in the first {len(table):,} rows)"
    columns = describe_columns(table, wanted)
    texts = [title]
    for most_columns, most_lines in _LENGTHS:
        described = columns[:most_columns]
        left = table.shape[1] - sum(line.columns for line in described)
        more = [f"- and {count_of(left, 'more column')}"] if left > 0 else []
        shown = [plain(line, _LINE_CHARACTERS) for line in lines[:most_lines]]
        block = [f"First rows:\n{fenced(shown)}"] if shown else []
        texts.append("\n".join([title + about, *(line.text for line in described), *more, *block]))
    return tuple(dict.fromkeys(texts))


def _to_predict(target: Target, table: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns of a train table that hold the labels, in whichever form they do."""
    is_named = any(name in table for name in target.columns)
    return target.columns if is_named else target.hidden_columns


def _preview_pictures(public: Path, group: FileGroup) -> Preview:
    kinds: Counter[str] = Counter()
    for name in group.paths[:_SAMPLED_PICTURES]:
        try:
            with Image.open(io.BytesIO(read_head(public / name))) as picture:
                kinds[f"{picture.width}x{picture.height} {picture.mode}"] += 1
        except (OSError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning):
            kinds["not readable"] += 1
    shown = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common(4))
    title = f"{name_of(group.name)}: {count_of(len(group.paths), 'picture')}"
    return title, f"{title}; width x height and mode of the first {kinds.total()}: {shown}"


def _preview_lines(path: Path, group: FileGroup) -> Preview:
    title = f"{name_of(group.name)}: {count_of(len(group.paths), 'file')}, {size_of(group.size)}"
    head = read_head(path, 1 << 14)
    if b"\0" in head:
        return (f"{title}, not text",)
    lines = head.decode("utf-8", "replace").splitlines()
    first = f"\n{name_of(group.paths[0])} begins:\n" if group.is_pattern else "\n"
    counts = [count for count in (4, 12) if lines]
    shown = [[plain(line, _LINE_CHARACTERS) for line in lines[:count]] for count in counts]
    return tuple(dict.fromkeys([title, *(f"{title}{first}{fenced(block)}" for block in shown)]))
