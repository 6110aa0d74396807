"""Does the data of a task stand in a package that every program of the sandbox can import?

A table whose columns are found in one bundled file is compared with it row by row; texts and
images are compared one by one. Data that was rescaled on the way is not recognised.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from reward_server.tasks.leaks.items import IMAGES, files_below
from reward_server.tasks.leaks.report import LeakCheck, LeakFinding, LeakKind, Severity
from reward_server.tasks.leaks.shipped import (
    index_environment,
    is_fine,
    long_texts,
    plain_value,
    read_rows,
    runs_of,
)
from reward_server.tasks.leaks.tables import read_written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from reward_server.tasks.base import Card
    from reward_server.tasks.leaks.shipped import Shipped

_NAME = "data that the sandbox ships"
_MOST_ROWS = 400
_MOST_IMAGES = 5_000
_HELD = 0.7
_SAME_ROWS = 0.5
_SAME_TEXTS = 0.02


def look_at_bundled(card: Card, public: Path, answers: Path, environment: Path | None) -> LeakCheck:
    """Compare the tables and images of a task with the files of the sandbox's environment."""
    if environment is None or not environment.is_dir():
        text = "the sandbox is a container image, which is not looked at"
        if environment is not None:
            text = "there is no environment of the sandbox to look at"
        note = LeakFinding(LeakKind.UNKNOWN, "the sandbox", text, severity=Severity.NOTE)
        return LeakCheck(_NAME, "nothing", (note,))
    shipped = index_environment(environment.resolve())
    findings = [*_find_tables(card, public, answers, shipped), *_find_images(public, shipped)]
    part = ", as far as time allowed" if shipped.is_part else ""
    count = len(shipped.files) + len(shipped.images)
    return LeakCheck(_NAME, f"{count} data files of the environment{part}", tuple(findings))


def _find_tables(
    card: Card, public: Path, answers: Path, shipped: Shipped
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


def _find_rows(place: str, table: pd.DataFrame, shipped: Shipped) -> Iterator[LeakFinding]:
    plain = {str(name): [plain_value(value) for value in table[name]] for name in table}
    share = _same_runs(plain, shipped)
    if share >= _SAME_ROWS:
        text = "runs of its columns stand in files that the sandbox ships"
        yield LeakFinding(LeakKind.BUNDLED, place, text, f"{share:.0%} of the rows looked at")
        return
    held: dict[int, list[tuple[float, str, int]]] = defaultdict(list)
    for name, values in plain.items():
        known = {value for value in values if value}
        if is_fine(known):
            for (file, column), part in shipped.columns_with(known).items():
                if part >= _HELD:
                    held[file].append((part, name, column))
    for file, columns in held.items():
        share = _same_rows(columns, plain, read_rows(shipped.files[file]))
        if share >= _SAME_ROWS:
            where = "/".join(shipped.files[file].parts[-4:])
            text = f"its rows stand in {where}, which the sandbox ships"
            yield LeakFinding(LeakKind.BUNDLED, place, text, f"{share:.0%} of the rows looked at")
            return


def _same_runs(plain: dict[str, list[str]], shipped: Shipped) -> float:
    """Return the share of rows of which a run of fields is shipped, and not by chance."""
    columns = list(plain.values())
    same, by_chance = (
        np.array([_held_runs(list(row), shipped) for row in zip(*part, strict=True)])
        for part in (columns, _mixed(columns))
    )
    return float(np.mean(same > 0)) if same.mean() > 3 * by_chance.mean() else 0.0


def _held_runs(row: list[str], shipped: Shipped) -> int:
    return sum(run in shipped.runs for run in runs_of(row))


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


def _find_texts(place: str, table: pd.DataFrame, shipped: Shipped) -> Iterator[LeakFinding]:
    texts = [text for name in table for text in long_texts(table[name])]
    hits = sum(hash(text) in shipped.texts for text in texts)
    if hits >= 5 and hits >= _SAME_TEXTS * len(texts):
        told = f"{hits} of {len(texts)} texts looked at"
        text = "its texts stand in a file that the sandbox ships"
        yield LeakFinding(LeakKind.BUNDLED, place, text, told)


def _find_images(public: Path, shipped: Shipped) -> Iterator[LeakFinding]:
    images = (item for item in files_below(public) if item.suffix in IMAGES)
    for _, item in zip(range(_MOST_IMAGES), images, strict=False):
        if hashlib.sha256(item.read()).hexdigest() in shipped.images:
            text = "it is an image that the sandbox ships"
            yield LeakFinding(LeakKind.BUNDLED, item.name, text)
            return
