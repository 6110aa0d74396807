"""The 99 species, named and ordered as in Kaggle's sample submission: the columns of the card."""

from __future__ import annotations

import tomllib
from pathlib import Path

_CARD = tomllib.loads(Path(__file__).with_name("task.toml").read_text(encoding="utf-8"))
SPECIES: tuple[str, ...] = tuple(_CARD["target"]["columns"])
