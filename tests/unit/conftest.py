"""Unit tests start no server, no Postgres and no sandbox: those belong in tests/integration."""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

# A program, and the first arguments with which it does nothing but describe itself (or, for our
# own command, those with which it does more than that).
REAL_PARTS = {"postgres", "initdb", "pg_ctl", "bwrap", "dockerd"}
HARMLESS = {"--help", "--version"}
SERVERS = {"serve", "work"}
_running: list[str] = []

HERE = Path(__file__).parent


def _is_real_part(word: str, argument: str) -> bool:
    """Tell a real part from a test's own stand-in, which is in a temporary folder."""
    if word.startswith(tempfile.gettempdir()):
        return False
    name = Path(word).name
    return (
        argument in SERVERS
        if name == "reward-server"
        else (name in REAL_PARTS and argument not in HARMLESS)
    )


def _refuse_real_parts(event: str, arguments: tuple[object, ...]) -> None:
    if event != "subprocess.Popen" or not _running:
        return
    given = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
    words = [os.fsdecode(word) for word in given if isinstance(word, (str, bytes, Path))]
    for word, argument in zip_longest(words, words[1:], fillvalue=""):
        if _is_real_part(word, argument):
            message = (
                f"{_running[-1]} starts {word} {argument}: unit tests start no server, no Postgres "
                "and no sandbox. Move the test to tests/integration."
            )
            raise RuntimeError(message)


sys.addaudithook(_refuse_real_parts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Guard the fixtures of a test."""
    return (yield from _guard(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Guard a test; its end is not guarded, because fixtures of other folders may end there."""
    return (yield from _guard(item))


def _guard(item: pytest.Item) -> Generator[None, object, object]:
    if not item.path.is_relative_to(HERE):  # the hooks are called for all tests
        return (yield)
    _running.append(item.nodeid)
    try:
        return (yield)
    finally:
        _running.pop()
