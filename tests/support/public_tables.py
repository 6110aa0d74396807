"""Reading the public tables of a task, typed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

from reward_server.tasks.sdk.tables import parse_csv

if TYPE_CHECKING:
    from pathlib import Path


def read_table(path: Path) -> pd.DataFrame:
    """Read CSV or JSON records with nested values as text."""
    if path.suffix != ".json":
        return parse_csv(path.read_bytes())
    table = pd.DataFrame(json.loads(path.read_bytes()))
    nested = [name for name in table if table[name].map(type).isin((list, dict)).any()]
    return table.assign(**{str(name): table[name].map(json.dumps) for name in nested})
