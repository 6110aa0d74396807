"""Comparing data prepared from Kaggle's files with MLE-bench's own, byte for byte.

Another version of pandas may write the same numbers with other digits, so a difference is a note
and never an error.
"""

from __future__ import annotations

import hashlib
import tomllib
from functools import partial
from pathlib import Path

_SUMS = Path(__file__).with_name("mlebench_checksums.toml")


def compare_with_mlebench(task_id: str, prepared: Path) -> str | None:
    """Return in words how the prepared files compare; nothing for a task without known sums."""
    sums: dict[str, str] = tomllib.loads(_SUMS.read_text(encoding="utf-8")).get(task_id, {})
    if not sums:
        return None
    differing = [path for path, md5 in sums.items() if _md5(prepared / path) != md5]
    if not differing:
        return "equals MLE-bench's own data"
    return f"differs from MLE-bench's in: {', '.join(differing)}"


def _md5(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        weak = partial(hashlib.md5, usedforsecurity=False)
        return hashlib.file_digest(file, weak).hexdigest()
