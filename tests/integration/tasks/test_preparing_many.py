"""The `prepare` command: one task or all that are missing, reported step by step."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from reward_server.cli.tasks import tasks_app
from reward_server.tasks.base import TwinSize
from reward_server.tasks.manifest import read_manifest
from reward_server.tasks.preparation.parallel import prepare_twins
from reward_server.tasks.preparation.steps import PreparationStage, PreparationStep
from tests.conftest import COMMAND
from tests.integration.tasks import tiny

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("tiny-one", "tiny-three", "tiny-two")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    return {name: tiny.write_task(tmp_path / "tasks", name) for name in NAMES}


@pytest.fixture
def data(data_dir: Path, tmp_path: Path) -> Path:
    """Return a data directory where every built-in task is prepared."""
    place = tmp_path / "data"
    place.mkdir()
    for path in data_dir.iterdir():
        if (path / "prepared").is_dir():
            (place / path.name).symlink_to(path)
    return place


def append(file: Path, text: str) -> None:
    file.write_text(f"{file.read_text()}\n{text}\n")


def start(data: Path, *arguments: str) -> subprocess.Popen[str]:
    tasks = f'["{data.parent / "tasks"}"]'
    # A shell's background jobs ignore interrupts and pass that on; a handler is not passed on.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [COMMAND, "tasks", "prepare", *arguments, "--data-dir", data],
            env={**os.environ, "REWARD_SERVER_TASK_FOLDERS": tasks, "COLUMNS": "300"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def run(data: Path, *arguments: str, status: int = 0) -> str:
    with start(data, *arguments) as process:
        said, _ = process.communicate(timeout=600)
    assert process.returncode == status, said
    return said


def test_each_task_is_prepared_and_reported(folders: dict[str, Path], tmp_path: Path) -> None:
    said: list[PreparationStep] = []
    assert prepare_twins(folders, tmp_path / "data", TwinSize.FULL, said.append) == ()
    for name in NAMES:
        assert read_manifest(tmp_path / "data" / name / "prepared").rows == 80
        stages = [step.stage for step in said if step.task_id == name]
        assert (stages[0], stages[-1]) == (PreparationStage.TWIN, PreparationStage.READY)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("raise ValueError('odd')", "twin.py failed with ValueError: odd"), ("os._exit(3)", "with 3")],
    ids=["an error", "a lost process"],
)
def test_a_failed_task_does_not_stop_the_others(
    folders: dict[str, Path], tmp_path: Path, fault: str, reason: str
) -> None:
    append(folders["tiny-three"] / "twin.py", f"import os\ndef generate(*_, **__):\n    {fault}")
    failures = prepare_twins(folders, tmp_path / "data", TwinSize.SMALL, lambda _: None)
    assert [failure.task_id for failure in failures] == ["tiny-three"]
    assert reason in failures[0].reason
    for name in ("tiny-one", "tiny-two"):
        assert read_manifest(tmp_path / "data" / name / "prepared").rows == 40


@pytest.mark.usefixtures("folders")
def test_the_command_numbers_the_missing_tasks(data: Path) -> None:
    said = run(data, "--missing", "--twin")
    assert "task 1 of 3: tiny-" in said
    assert "task 3 of 3: tiny-" in said
    assert said.count("making the twin, 40 rows") == 3
    assert said.count("verifying 5 of 5 files") == 3
    assert said.count(": ready, 5 files, data digest ") == 3
    assert not run(data, "--missing", "--twin")


def test_the_command_fails_when_a_task_fails(folders: dict[str, Path], data: Path) -> None:
    append(folders["tiny-two"] / "prepare.py", "def prepare(*_):\n    raise ValueError('odd')")
    said = run(data, "--missing", "--twin", status=1)
    assert "failed tiny-two: tiny-two: prepare.py failed with ValueError: odd" in said
    assert "Traceback" not in said
    assert sorted(path.parent.name for path in data.glob("tiny-*/prepared")) == [
        *("tiny-one", "tiny-three")
    ]


@pytest.mark.parametrize("arguments", [("--missing",), ("tiny-one",)], ids=["missing", "one"])
def test_a_keyboard_interrupt_leaves_no_partial_data(
    folders: dict[str, Path], data: Path, arguments: tuple[str, ...]
) -> None:
    for folder in folders.values():
        append(folder / "prepare.py", "import time\ndef prepare(*_):\n    time.sleep(60)")
    with start(data, *arguments, "--twin") as process:
        deadline = time.monotonic() + 300  # the built-in tasks may come first
        while not list(data.glob("tiny-*/.building/prepared/private")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode not in (0, -signal.SIGKILL)
    assert "Traceback" not in said
    assert [path for home in data.glob("tiny-*") for path in home.iterdir()] == []


@pytest.mark.usefixtures("folders")
def test_prepared_data_is_left_unchanged(data: Path) -> None:
    prepared = data / "tiny-one" / "prepared"
    assert "ready" in run(data, "tiny-one", "--twin")
    digest = read_manifest(prepared).data_digest
    assert "unchanged tiny-one" in run(data, "tiny-one", "--twin")
    assert read_manifest(prepared).data_digest == digest
    assert "ready" in run(data, "tiny-one", "--twin", "--force")
    again = read_manifest(prepared).data_digest
    assert again != digest
    assert "making the twin, 80 rows" in run(data, "tiny-one", "--twin", "--size", "full")


@pytest.mark.usefixtures("folders")
def test_a_damaged_manifest_is_missing_and_can_be_prepared_again(data: Path) -> None:
    run(data, "--missing", "--twin")
    for name, arguments in (("tiny-one", ("tiny-one",)), ("tiny-two", ("--missing",))):
        manifest = data / name / "prepared" / "manifest.json"
        manifest.write_text("{")
        assert f"{name}: ready" in run(data, *arguments, "--twin")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("tiny-one",), "Usage"),
        (("--missing", "--twin", "--force"), "Usage"),
        (("--twin",), "Usage"),
        (("tiny-one", "--raw", ".", "--size", "full"), "only a twin has a --size"),
    ],
)
@pytest.mark.usefixtures("folders")
def test_contradicting_options_are_refused(
    data: Path, arguments: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REWARD_SERVER_TASK_FOLDERS", f'["{data.parent / "tasks"}"]')
    words = ["prepare", *arguments, "--data-dir", str(data)]
    done = CliRunner().invoke(tasks_app, words, env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert reason in done.output
    assert not list(data.glob("tiny-*"))
