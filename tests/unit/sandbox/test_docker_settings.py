"""Settings of the docker sandbox, and the paths that the engine sees."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from reward_server.bootstrap.implementations import make_sandbox
from reward_server.bootstrap.preflight import run_preflight
from reward_server.errors import SetupError
from reward_server.sandbox.docker.engine import find_engine
from reward_server.sandbox.docker.volumes import pack
from reward_server.sandbox.leases import share, share_cores
from reward_server.settings import BubblewrapSettings, DockerSettings, load_settings

PREFIX = "REWARD_SERVER_SANDBOX__"


def set_all(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"{PREFIX}{name}", value)


def test_bubblewrap_needs_no_naming(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().sandbox == BubblewrapSettings()
    set_all(monkeypatch, SLOTS="3")
    assert load_settings().sandbox == BubblewrapSettings(slots=3)


def test_docker_is_named_by_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, KIND="docker", IMAGE="mine", GPUS='["0", "1"]', RUNTIME="runsc", SLOTS="2")
    expected = DockerSettings(
        kind="docker", image="mine", gpus=("0", "1"), runtime="runsc", slots=2
    )
    assert load_settings().sandbox == expected


def test_there_are_no_more_slots_than_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, KIND="docker", GPUS='["0"]')
    assert load_settings().slots == 1


@pytest.mark.parametrize(
    "values",
    [
        {"KIND": "podman"},
        {"KIND": "docker", "ENVIRONMENT": ".venv-sandbox"},
        {"KIND": "bubblewrap", "IMAGE": "mine"},
        {"KIND": "docker", "ENGINE": "tcp://127.0.0.1:2375"},
        {"KIND": "docker", "GPUS": '["0"]', "SLOTS": "2"},
        {"KIND": "docker", "GPUS": '["0", "0"]'},
    ],
)
def test_settings_of_another_sandbox_are_refused(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str]
) -> None:
    set_all(monkeypatch, **values)
    with pytest.raises(SetupError, match="sandbox"):
        load_settings()


def test_an_engine_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    with pytest.raises(SetupError, match="not on this machine"):
        find_engine(None)
    assert find_engine("unix:///run/mine.sock") == "unix:///run/mine.sock"


def test_the_preflight_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_all(monkeypatch, KIND="docker", ENGINE=f"unix://{tmp_path}/nobody.sock")
    found = {finding.name: finding for finding in run_preflight(load_settings(data_dir=tmp_path))}
    assert not found["container engine"].is_met
    assert "install and start Docker" in found["container engine"].detail
    assert "bubblewrap" not in found


def test_the_engine_finds_our_data_on_its_own_side(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    public = tmp_path / "task" / "prepared" / "public"
    set_all(monkeypatch, KIND="docker", ENGINE="unix:///nobody.sock")
    here = make_sandbox(load_settings(data_dir=tmp_path))
    assert here._to_host(public) == public  # type: ignore[attr-defined]
    set_all(monkeypatch, HOST_DATA_DIR="/srv/data")
    inside = make_sandbox(load_settings(data_dir=tmp_path))
    found = inside._to_host(public)  # type: ignore[attr-defined]
    assert found == Path("/srv/data/task/prepared/public")


@pytest.mark.parametrize("name", ["a:b", "a,b", "a\\b"])
def test_data_that_no_mount_can_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    set_all(monkeypatch, KIND="docker", ENGINE="unix:///nobody.sock")
    make_sandbox(load_settings(data_dir=tmp_path / "a b"))
    with pytest.raises(SetupError, match="choose another"):
        make_sandbox(load_settings(data_dir=tmp_path / name))
    found = {
        finding.name: finding for finding in run_preflight(load_settings(data_dir=tmp_path / name))
    }
    assert "choose another" in found["container engine"].detail
    set_all(monkeypatch, HOST_DATA_DIR="/srv/data")
    make_sandbox(load_settings(data_dir=tmp_path / name))


def test_cores_and_devices_are_shared_out_evenly() -> None:
    assert [share_cores([4, 5, 6], slot, 2) for slot in range(2)] == [(4, 6), (5,)]
    assert [share_cores([4, 5], slot, 3) for slot in range(3)] == [(4,), (5,), (4,)]
    assert [share(["a"], slot, 2) for slot in range(2)] == [("a",), ()]


def test_a_container_is_sent_a_plain_archive() -> None:
    """A compressed one would be unpacked by whatever the image calls its unpacker (FS-13)."""
    archive = io.BytesIO(pack({"code/": b"", "code/container_init.py": b"pass"}))
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        assert [(entry.name, entry.isreg()) for entry in tar] == [
            ("code", False),
            ("code/container_init.py", True),
        ]
