from __future__ import annotations

from pathlib import Path

import pytest

from reward_server.errors import SetupError
from reward_server.sandbox.bubblewrap import command
from reward_server.sandbox.leases import share_cores
from reward_server.sandbox.payload import ENVIRONMENT


@pytest.mark.parametrize("nothing", [None, "/nothing"])
def test_a_box_shows_its_environment_at_a_fixed_path(
    nothing: str | None,
) -> None:
    folder = Path("/tmp/somewhere/environment")  # noqa: S108
    interpreter = command.Interpreter(folder, Path("/usr"))
    sources = command.Sources("bwrap", str(folder), "/usr", "/inside", "/etc", nothing)
    line = command.build_command(sources, interpreter, "task", "/public", 1 << 20)
    assert ENVIRONMENT in line[line.index(str(folder)) :][1:3]
    assert line[line.index("--") + 1].startswith(ENVIRONMENT)


def test_with_overlays_no_folder_of_the_host_is_shown_as_it_is() -> None:
    interpreter = command.Interpreter(Path("/environment-there"), Path("/opt/python"))
    sources = command.Sources("bwrap", "/environment-there", "/base", "/in", "/etc-there", "/none")
    box = command.build_command(sources, interpreter, "task", "/public", 1 << 20)
    zygote = command.build_zygote_command(sources, interpreter, {"1-2": "/public"})
    for line in (box, zygote):
        binds = [line[place + 1] for place, word in enumerate(line) if word.startswith("--ro-bind")]
        assert binds == []
        shown = {line[place + 1] for place, word in enumerate(line) if word == "--overlay-src"}
        assert {"/usr", "/environment-there", "/base", "/in", "/etc-there", "/public"} <= shown


def test_a_box_has_copies_of_the_few_system_settings_it_needs(
    tmp_path: Path,
) -> None:
    command.fill_etc(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert "ld.so.cache" in names
    assert names <= {"alternatives", "ld.so.cache", "localtime", "mime.types"}
    assert not any(path.is_symlink() for path in tmp_path.iterdir())


def test_a_missing_environment_is_reported_with_its_remedy(tmp_path: Path) -> None:
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
