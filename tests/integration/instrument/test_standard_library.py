"""The static analyzer on real programs of every kind: the standard library."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from tests.unit.instrument.corpus import markers_verify


def test_markers_of_the_standard_library_verify() -> None:
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    sources = [path for path in sources if path.stat().st_size < 100_000][:200]
    assert sum(markers_verify(path.read_text(encoding="utf-8")) for path in sources) > 150
