"""A preparation that is killed, crowded out or starved leaves whole data, old or new."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from reward_server.errors import SetupError
from reward_server.tasks.base import TwinSize
from reward_server.tasks.manifest import digest_files, read_manifest, record_files
from reward_server.tasks.preparation import durable_files
from reward_server.tasks.preparation.prepare import find_unchanged, prepare_task
from reward_server.tasks.preparation.steps import PreparationStage, PreparationStep
from tests.integration.tasks import tiny

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KILLED = signal.SIGKILL
TOUCHING = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.write_task(tmp_path / "tasks")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def kill_at(stage: PreparationStage) -> Callable[[PreparationStep], None]:
    def report(step: PreparationStep) -> None:
        if step.stage is stage:
            os.kill(os.getpid(), KILLED)

    return report


def killed_at(stage: PreparationStage, folder: Path, data: Path) -> None:
    status = tiny.in_a_fork(lambda: prepare_task(folder, data, progress=kill_at(stage)))
    assert os.WTERMSIG(status) == KILLED


def kill_at_touch(number: int, home: Path) -> None:
    """End this process when it touches files of a task for the nth time."""
    left = number

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in TOUCHING and str(arguments[0]).startswith(str(home)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), KILLED)

    sys.addaudithook(count)


def assert_whole(prepared: Path) -> str:
    manifest = read_manifest(prepared)
    assert record_files(prepared) == manifest.files
    assert digest_files(manifest.files) == manifest.data_digest
    return manifest.data_digest


def left_in(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir())


@pytest.mark.parametrize("replacing", ["swapped", "moved aside"])
def test_whole_data_is_served_whenever_the_preparation_is_killed(
    folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch, replacing: str
) -> None:
    if replacing == "moved aside":
        monkeypatch.setattr(durable_files, "_exchange", lambda _, __: False)
    home = data / tiny.ID
    prepare_task(folder, data)
    ends = set()
    for number in range(1, 1000, 5):

        def work(number: int = number) -> None:
            kill_at_touch(number, home)
            prepare_task(folder, data)

        before = assert_whole(home / "prepared")
        status = tiny.in_a_fork(work)
        ends.add(status)
        if replacing == "swapped" or (home / "prepared").exists():
            after = assert_whole(home / "prepared")
            assert (after != before) or status != 0
        prepare_task(folder, data)
        assert left_in(home) == ["prepared"]
        if status == 0:
            break
    assert ends == {0, KILLED}


@pytest.mark.parametrize(
    ("stage", "twins", "splits"),
    [
        (PreparationStage.TWIN, 1, 1),
        (PreparationStage.SPLIT, 1, 1),
        (PreparationStage.RECORD, 1, 1),
        (PreparationStage.GRADE, 1, 1),
        (PreparationStage.VERIFY, 1, 1),
    ],
)
def test_a_killed_preparation_resumes_after_its_last_complete_stage(
    folder: Path, data: Path, stage: PreparationStage, twins: int, splits: int
) -> None:
    killed_at(stage, folder, data)
    said: list[PreparationStep] = []
    prepare_task(folder, data, progress=said.append)
    assert (tiny.calls(folder).count("twin"), tiny.calls(folder).count("split")) == (twins, splits)
    assert (said[0].stage is PreparationStage.RESUMED) == (stage is not PreparationStage.TWIN)
    assert_whole(data / tiny.ID / "prepared")
    assert left_in(data / tiny.ID) == ["prepared"]


def test_complete_data_of_a_killed_preparation_is_served(folder: Path, data: Path) -> None:
    killed_at(PreparationStage.VERIFY, folder, data)
    state = json.loads((data / tiny.ID / ".building" / "state.json").read_text())
    assert prepare_task(folder, data).data_digest == state["data_digest"]


def test_the_seed_is_private_and_deleted_at_the_end(folder: Path, data: Path) -> None:
    building = data / tiny.ID / ".building"
    killed_at(PreparationStage.SPLIT, folder, data)
    assert building.stat().st_mode & 0o777 == 0o700
    seed = json.loads((building / "state.json").read_text())["seed"]
    assert seed > 1 << 64
    killed_at(PreparationStage.VERIFY, folder, data)
    assert json.loads((building / "state.json").read_text())["seed"] is None
    assert left_in(building) == ["prepared", "state.json"]
    prepare_task(folder, data)
    for path in data.rglob("*"):
        assert path.is_dir() or str(seed) not in path.read_text()


CHANGES = {
    "twin.py": lambda folder: (folder / "twin.py").open("a").write("\n# other\n"),
    "the card": lambda folder: (folder / "task.toml").open("a").write("\n# other\n"),
    "prepare.py": lambda folder: (folder / "prepare.py").open("a").write("\n# other\n"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_changed_task_starts_anew(
    folder: Path, data: Path, change: Callable[[Path], object]
) -> None:
    killed_at(PreparationStage.GRADE, folder, data)
    change(folder)
    prepare_task(folder, data)
    assert tiny.calls(folder) == ["twin", "split"] * 2


def test_another_size_or_source_starts_anew(folder: Path, data: Path, tmp_path: Path) -> None:
    killed_at(PreparationStage.GRADE, folder, data)
    assert prepare_task(folder, data, size=TwinSize.FULL).rows == 80
    killed_at(PreparationStage.GRADE, folder, data)
    (tmp_path / "raw").mkdir()
    rows = "".join(f"{n},0.5,{n % 2}\n" for n in range(30))
    (tmp_path / "raw" / "train.csv").write_text(f"id,x,y\n{rows}")
    made = prepare_task(folder, data, raw=tmp_path / "raw")
    assert (made.size, made.rows) == (None, None)
    assert "29,0.5" in (data / tiny.ID / "prepared" / "public" / "test.csv").read_text()


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file", "without a state"])
def test_a_foreign_building_folder_is_removed_and_not_used(
    folder: Path, data: Path, tmp_path: Path, kind: str
) -> None:
    killed_at(PreparationStage.RECORD, folder, data)
    building = data / tiny.ID / ".building"
    other = tmp_path / "other"
    if kind == "open to others":
        building.chmod(0o755)
    elif kind == "without a state":
        (building / "state.json").unlink()
    else:
        building.rename(other)
        building.touch() if kind == "a file" else building.symlink_to(other)
    prepare_task(folder, data)
    assert tiny.calls(folder) == ["twin", "split"] * 2
    assert left_in(data / tiny.ID) == ["prepared"]
    assert not other.exists() or (other / "state.json").exists()


def test_of_two_preparations_at_once_one_is_refused(folder: Path, data: Path) -> None:
    home = data / tiny.ID

    def wait_at_the_split(step: PreparationStep) -> None:
        if step.stage is PreparationStage.SPLIT:
            (data / "waiting").touch()
            time.sleep(60)

    child = os.fork()
    if child == 0:
        prepare_task(folder, data, progress=wait_at_the_split)
        os._exit(0)
    while not (data / "waiting").exists():
        time.sleep(0.01)
    with pytest.raises(SetupError, match="tiny-task is being prepared by another process"):
        prepare_task(folder, data)
    assert (home / ".building" / "raw" / "train.csv").exists()
    os.kill(child, KILLED)
    os.waitpid(child, 0)
    prepare_task(folder, data)
    assert tiny.calls(folder) == ["twin", "split"]


def test_a_full_disk_is_a_one_line_error_and_keeps_the_old_data(
    folder: Path, data: Path, tmp_path: Path
) -> None:
    before = prepare_task(folder, data)
    said = tmp_path / "said"
    said.touch()

    def starve() -> None:
        with said.open("w") as file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            try:
                prepare_task(folder, data, size=TwinSize.FULL)
            except SetupError as error:
                file.write(str(error))

    assert tiny.in_a_fork(starve) == 0
    assert said.read_text().startswith("tiny-task is not prepared: File too large")
    assert "\n" not in said.read_text()
    assert assert_whole(data / tiny.ID / "prepared") == before.data_digest
    assert left_in(data / tiny.ID) == ["prepared"]


def test_a_keyboard_interrupt_leaves_nothing_behind(folder: Path, data: Path) -> None:
    def interrupt(step: PreparationStep) -> None:
        if step.stage is PreparationStage.RECORD:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_task(folder, data, progress=interrupt)
    assert left_in(data / tiny.ID) == []


def test_data_that_reads_back_differently_is_never_served(folder: Path, data: Path) -> None:
    before = prepare_task(folder, data)

    def damage(step: PreparationStep) -> None:
        if step.stage is PreparationStage.GRADE:
            place = data / tiny.ID / ".building" / "prepared" / "public" / "train.csv"
            place.write_bytes(place.read_bytes()[:-1] + b"!")

    with pytest.raises(SetupError, match=r"public/train\.csv reads back differently"):
        prepare_task(folder, data, progress=damage)
    assert assert_whole(data / tiny.ID / "prepared") == before.data_digest


def test_unchanged_data_is_recognised(folder: Path, data: Path) -> None:
    assert find_unchanged(folder, data) is None
    made = prepare_task(folder, data)
    assert find_unchanged(folder, data) == made
    assert find_unchanged(folder, data, size=TwinSize.FULL) is None
    public = data / tiny.ID / "prepared" / "public" / "train.csv"
    public.write_bytes(public.read_bytes() + b"\n")
    assert find_unchanged(folder, data) is None


def test_unchanged_raw_files_are_recognised(folder: Path, data: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    rows = "".join(f"{n},0.5,{n % 2}\n" for n in range(30))
    (raw / "train.csv").write_text(f"id,x,y\n{rows}")
    made = prepare_task(folder, data, raw=raw)
    assert find_unchanged(folder, data, raw=raw) == made
    assert find_unchanged(folder, data) is None
    (raw / "train.csv").write_text(f"id,x,y\n{rows}30,0.5,0\n")
    assert find_unchanged(folder, data, raw=raw) is None
