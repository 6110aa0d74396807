"""Unit tests start no server, no Postgres and no sandbox: those belong in tests/integration."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

REAL_PARTS = {"reward-server", "postgres", "initdb", "pg_ctl", "bwrap", "dockerd"}
_running: list[str] = []


def _refuse_real_parts(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse to start a real part; a test's own stand-in in a temporary folder may run."""
    if event != "subprocess.Popen" or not _running:
        return
    words = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
    for word in (os.fsdecode(word) for word in words if isinstance(word, (str, bytes, Path))):
        own = word.startswith(tempfile.gettempdir())
        if Path(word).name in REAL_PARTS and not own:
            message = (
                f"{_running[-1]} starts {word}: unit tests start no server, no Postgres and no "
                "sandbox. Move the test to tests/integration."
            )
            raise RuntimeError(message)


sys.addaudithook(_refuse_real_parts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Guard each test with its fixtures; tests of other folders do not come by here."""
    _running.append(item.nodeid)
    try:
        return (yield)
    finally:
        _running.pop()
