"""Reading raw tables of millions of rows with little memory.

Whole numbers are kept in as few bytes as they need; written out again they look the same.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pandas as pd
from pandas.api.types import is_integer_dtype

from reward_server.errors import SetupError
from reward_server.tasks.sdk.raw import read_raw
from reward_server.tasks.sdk.tables import PRECISION

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_PIECE_ROWS = 250_000
_FEWEST_ROWS = 2


def read_large_csv(
    raw: Path, name: str, archives: Iterable[str], columns: Iterable[str]
) -> pd.DataFrame:
    """Return a raw table that has at least the columns, floats exactly as they are written.

    Raises:
        SetupError: when it is missing, is no table, lacks a column or has less than two rows.
    """
    data = read_raw(raw, name, archives)
    try:
        pieces = pd.read_csv(
            io.BytesIO(data), float_precision=PRECISION, compression=None, chunksize=_PIECE_ROWS
        )
        table = pd.concat(map(_narrow, pieces), ignore_index=True)
    except ValueError as error:
        message = f"the raw file {name} is not a readable table: {error}"
        raise SetupError(message) from error
    missing = [column for column in columns if column not in table.columns]
    if missing:
        message = f"the raw file {name} has no column {missing[0]}"
        raise SetupError(message)
    if len(table) < _FEWEST_ROWS:
        message = f"the raw file {name} has less than two rows"
        raise SetupError(message)
    return table


def _narrow(piece: pd.DataFrame) -> pd.DataFrame:
    whole = [name for name in piece if is_integer_dtype(piece[name].dtype)]
    return piece.assign(
        **{str(name): pd.to_numeric(piece[name], downcast="integer") for name in whole}
    )
