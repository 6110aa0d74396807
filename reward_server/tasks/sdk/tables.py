"""Reading CSV as MLE-bench does, with floats exactly as written, in all versions of pandas."""

from __future__ import annotations

import io
import re
from decimal import Decimal
from typing import Literal

import pandas as pd
from pandas.api.types import is_numeric_dtype

_IS_ALWAYS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
PRECISION: Literal["round_trip"] | None = None if _IS_ALWAYS_EXACT else "round_trip"
_MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
_WHOLE_NUMBER = re.compile(r"\s*[-+]?[0-9]{19,}\s*")


def parse_csv(data: bytes) -> pd.DataFrame:
    """Parse UTF-8 text as MLE-bench does; text without a header is an empty table."""
    try:
        table = pd.read_csv(
            io.BytesIO(data), float_precision=PRECISION, compression=None, encoding="utf-8"
        )
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    for name in table.columns:
        if not is_numeric_dtype(table[name].dtype):
            table[name] = _as_pandas_2_reads(table[name])
    return table


def _as_pandas_2_reads(texts: pd.Series) -> pd.Series:
    """Undo what pandas 3 makes of whole numbers beyond 64 bits.

    A column of them is text and not Python's integers; a column of texts with one of them has
    its gaps like any other.
    """
    present = texts.dropna()
    if len(present) and all(type(value) is int for value in present):
        return texts.map(str, na_action="ignore")
    is_missing = texts.isin(_MISSING)
    if is_missing.any() and any(map(_is_beyond_64_bits, present)):
        return texts.mask(is_missing)
    return texts


def _is_beyond_64_bits(value: object) -> bool:
    text = str(value)
    return bool(_WHOLE_NUMBER.fullmatch(text)) and not -(2**63) <= Decimal(text) < 2**64
