from __future__ import annotations

import ast
import json
import warnings
from typing import TYPE_CHECKING

from reward_server.instrument.static.analyzer import find_markers
from reward_server.instrument.verification import insert_markers
from tests.unit.instrument.corpus import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PUBLIC = "/workdir/random-acts-of-pizza/prepared/public"


def test_a_real_run_passes_every_milestone_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {
            "request_id": f"t3_{number}",
            "request_text_edit_aware": "please pizza " * (number % 3 + 1) + f"word{number % 5}",
            "requester_received_pizza": number % 2 == 0,
        }
        for number in range(40)
    ]
    for name in ("train.json", "test.json"):
        (tmp_path / name).write_text(json.dumps(rows))
    code = next(path for path in PROGRAMS if path.stem == "pizza_flat").read_text()
    code = code.replace(PUBLIC, str(tmp_path))
    tree = insert_markers(ast.parse(code), find_markers(ast.parse(code)), "mark")
    monkeypatch.chdir(tmp_path)
    seen: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(tree, "<program>", "exec"), {"mark": seen.append})  # noqa: S102
    assert list(dict.fromkeys(seen)) == [1, 2, 3, 5, 4, 6, 7]
    assert (tmp_path / "submission.csv").exists()
