"""The paper's Table 3 (arXiv 2509.01684), from `table3.toml`, and its comparison with a run."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainer_client.integrations.verl.findings import at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer_client.integrations.verl.findings import Tree


@dataclass(frozen=True, slots=True)
class Table3Row:
    """One row of the table, with the current keys of the paper's name.

    `is_global` values are divided among the GPUs. `must` are keys without which the others have no
    effect.
    """

    name: str
    value: object
    keys: tuple[str, ...]
    note: str = ""
    is_global: bool = False
    must: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row of the table beside a run's value. `is_same` is None where the paper gives none."""

    row: Table3Row
    found: str
    is_same: bool | None


_WORDS = {True: "same", False: "DIFFERS", None: "not said"}
_NONE = "no critic"


def _read(file: Path) -> Iterator[Table3Row]:
    for name, row in tomllib.loads(file.read_text()).items():
        yield Table3Row(
            name,
            row.get("value"),
            tuple(row["keys"]),
            row.get("note", ""),
            is_global=row.get("is_global", False),
            must=tuple(row.get("must", {}).items()),
        )


TABLE3 = tuple(_read(Path(__file__).with_name("table3.toml")))


def compare(tree: Tree) -> list[Comparison]:
    """Compare every row of the table with a run's configuration."""
    return [_compare(row, tree) for row in TABLE3]


def _compare(row: Table3Row, tree: Tree) -> Comparison:
    if row.name.startswith("critic_") and not has_critic(tree):
        return Comparison(row, _NONE, None if row.value is None else False)
    missing = [f"{key} is not {_print(value)}" for key, value in row.must if at(tree, key) != value]
    if missing:
        return Comparison(row, "; ".join(missing), is_same=False)
    values = [at(tree, key) for key in row.keys]
    shown = " and ".join(dict.fromkeys(_print(value) for value in values))
    if not row.is_global:
        is_same = all(_is_same(row.value, value) for value in values)
        return Comparison(row, shown, None if row.value is None else is_same)
    gpus = at(tree, "trainer.nnodes", 1) * at(tree, "trainer.n_gpus_per_node", 1)
    is_same = all(isinstance(value, int) and value * gpus == row.value for value in values)
    return Comparison(row, f"{shown} x {gpus} GPU{'s' if gpus > 1 else ''}", is_same)


def has_critic(tree: Tree) -> bool:
    """Tell whether a run trains a critic, as veRL decides it."""
    enabled = at(tree, "critic.enable")
    return bool(enabled) if enabled is not None else at(tree, "algorithm.adv_estimator") == "gae"


def _is_same(paper: object, found: object) -> bool:
    if isinstance(paper, str) and isinstance(found, str):  # a model may be in any folder
        return found.rstrip("/").rpartition("/")[2] == paper
    return found == paper


def _print(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def show(comparisons: list[Comparison]) -> list[str]:
    """Return the comparison as lines of a table."""
    head = ("Table 3", "paper", "veRL", "this run", "")
    rows = [head]
    for one in comparisons:
        keys = ", ".join(key.replace("actor_rollout_ref.", "") for key in one.row.keys)
        paper = "-" if one.row.value is None else _print(one.row.value)
        rows.append((one.row.name, paper, keys, one.found, _WORDS[one.is_same]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def explain(comparisons: list[Comparison], reasons: Mapping[str, str]) -> list[str]:
    """Return a line for each difference with its reason, from the preset's comments."""
    lines = []
    for one in comparisons:
        if one.is_same is False:
            keys = [*one.row.keys, *(key for key, _ in one.row.must)]
            keys = ["critic.enable", "algorithm.adv_estimator"] if one.found == _NONE else keys
            why = next(
                (reasons[key] for key in keys if key in reasons), "the preset gives no reason"
            )
            lines.append(f"  {one.row.name}: {one.found} instead of {_print(one.row.value)}: {why}")
    return lines
