from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reward_server.sandbox.inside.artifacts import open_artifact

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "submission.csv"


def collect(folder: Path, most_bytes: int = 100) -> tuple[str, bytes | None]:
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    before = len(list(Path("/proc/self/fd").iterdir()))
    try:
        kind, descriptor = open_artifact(handle, NAME, most_bytes)
        if descriptor is None:
            assert len(list(Path("/proc/self/fd").iterdir())) == before
            return kind, None
        with os.fdopen(descriptor, "rb") as file:
            return kind, file.read()
    finally:
        os.close(handle)


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"a,b\n")
    assert collect(tmp_path) == ("file", b"a,b\n")


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    assert collect(tmp_path) == ("file", b"")


def test_a_closed_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"x")
    (tmp_path / NAME).chmod(0)
    assert collect(tmp_path) == ("file", b"x")


def test_a_missing_file_is_distinguished_from_a_bad_one(tmp_path: Path) -> None:
    assert collect(tmp_path) == ("absent", None)


@pytest.mark.parametrize(("size", "kind"), [(100, "file"), (101, "refused"), (1 << 40, "refused")])
def test_size_is_capped_by_what_the_file_claims(tmp_path: Path, size: int, kind: str) -> None:
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(size)
    assert collect(tmp_path)[0] == kind


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def linked(path: Path) -> None:
    path.with_name("real").write_text("x")
    path.symlink_to("real")


def hard_linked(path: Path) -> None:
    path.with_name("real").write_text("x")
    path.hardlink_to(path.with_name("real"))


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        one.bind(path.name)


@pytest.mark.parametrize(
    "make", [dangling, linked, hard_linked, bound, os.mkfifo, os.mkdir], ids=lambda f: f.__name__
)
def test_what_is_no_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / NAME)
    assert collect(tmp_path) == ("refused", None)
