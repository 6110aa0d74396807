"""Reading CSV with every float exactly as it is written, in all versions of pandas."""

from __future__ import annotations

import io
from typing import Literal

import pandas as pd

_IS_ALWAYS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
PRECISION: Literal["round_trip"] | None = None if _IS_ALWAYS_EXACT else "round_trip"


def parse_csv(data: bytes) -> pd.DataFrame:
    """Parse UTF-8 text as MLE-bench does; text without a header is an empty table."""
    try:
        return pd.read_csv(
            io.BytesIO(data), float_precision=PRECISION, compression=None, encoding="utf-8"
        )
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
