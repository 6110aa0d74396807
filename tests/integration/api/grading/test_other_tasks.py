"""Tasks outside of the catalog on a real server: a new one, and competitions of MLE-bench."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from rich.console import Console
from typer.testing import CliRunner

from reward_server.cli import tasks
from reward_server.tasks.catalog.template import write_task
from reward_server.tasks.preparation.prepare import prepare_task
from tests.conftest import ROOT, start_server, stop_server
from tests.support import competitions as made

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW = "machines-of-mine"


@dataclass(frozen=True)
class TaskPlace:
    """Where everything lies, and the settings that say so."""

    root: Path
    settings: dict[str, str]


@pytest.fixture(scope="module")
def place() -> Iterator[TaskPlace]:
    # Not pytest's own folder: that is closed to the account Postgres runs as under root.
    with tempfile.TemporaryDirectory(prefix="reward-server-test-") as name:
        root = Path(name)
        root.chmod(0o755)
        prepare_task(write_task(NEW, root / "tasks"), root / "ours")
        made.make_data(root / "data")
        settings = {
            "REWARD_SERVER_TASK_FOLDERS": json.dumps([str(root / "tasks")]),
            "REWARD_SERVER_MLEBENCH__PACKAGE": str(made.make_package(root)),
            "REWARD_SERVER_MLEBENCH__DATA_DIR": str(root / "data"),
        }
        yield TaskPlace(root, settings)


@pytest.fixture(scope="module")
def other(place: TaskPlace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    log = tmp_path_factory.mktemp("server") / "log"
    process, url = start_server(place.root / "ours", log, place.settings)
    try:
        with httpx.Client(base_url=url, timeout=300) as client:
            yield client
    finally:
        stop_server(process)
    assert "pointed-at is not served: its direction is not known" in log.read_text()


@pytest.fixture
def here(place: TaskPlace, monkeypatch: pytest.MonkeyPatch) -> TaskPlace:
    for name, value in place.settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("REWARD_SERVER_DATA_DIR", str(place.root / "ours"))
    monkeypatch.setattr(tasks, "out", Console(width=300))
    return place


def run(*arguments: object, status: int = 0) -> str:
    done = CliRunner().invoke(tasks.tasks_app, [*map(str, arguments)])
    assert done.exit_code == status, done.output
    return f"{done.output}{done.exception or ''}"


def write_submission(text: str) -> str:
    return f"open('submission.csv', 'w').write({text!r})"


def copy_sample(task_id: str) -> str:
    public = f"/workdir/{task_id}/prepared/public"
    return f"import shutil\nshutil.copy({public!r} + '/sample_submission.csv', 'submission.csv')"


def score(other: httpx.Client, task_id: str, code: str) -> httpx.Response:
    return other.post("/score", json={"task_id": task_id, "code": code})


@pytest.mark.parametrize(
    ("task_id", "expected"), [(NEW, 0.5), (made.FRUIT, 0.75), (made.RIVER, 3.5 / 3)]
)
def test_the_sample_submission_is_scored(
    other: httpx.Client, task_id: str, expected: float
) -> None:
    answer = score(other, task_id, copy_sample(task_id)).json()
    assert answer["status"] == "scored", answer
    assert answer["score"] == pytest.approx(expected, abs=1e-12)
    assert answer["higher_is_better"] is (task_id != made.RIVER)
    assert len(answer["data_digest"]) == 64


def test_competitions_are_listed_with_what_a_prompt_needs(other: httpx.Client) -> None:
    listed = {task["id"] for task in other.get("/v1/tasks").json()["tasks"]}
    assert listed == {NEW, made.FRUIT, made.RIVER, made.SCALES, made.DEADLY_ID}
    task = other.get(f"/v1/tasks/{made.RIVER}").json()
    assert task["columns"] == ["id", "level"]
    assert task["public_folder"] in task["description"]


@pytest.mark.parametrize("text", ["id,level\n1,2\n2,2\n3,high\n", "id\n1\n", "id,level\n"])
def test_an_invalid_submission_is_the_programs_failure(other: httpx.Client, text: str) -> None:
    answer = score(other, made.RIVER, write_submission(text)).json()
    assert answer["error"]["kind"] == "invalid_submission"
    assert answer["reward"] < -9


def test_a_broken_grader_is_never_a_reward(other: httpx.Client) -> None:
    answer = score(other, made.SCALES, copy_sample(made.SCALES))
    assert answer.status_code == 503
    assert answer.json()["kind"] == "grader_error"
    assert "reward" not in answer.json()


@pytest.mark.parametrize(
    "task_id", [made.POINTED, made.CLASHING, made.OTHER_FORMAT, "without-data"]
)
def test_a_task_that_is_not_served_is_unknown_without_a_path(
    other: httpx.Client, place: TaskPlace, task_id: str
) -> None:
    answer = score(other, task_id, "pass")
    assert answer.status_code == 404
    assert str(place.root) not in answer.text


def test_programs_see_only_public_data_and_cannot_change_it(other: httpx.Client) -> None:
    code = (
        "import os\n"
        f"os.chdir('/workdir/{made.FRUIT}/prepared')\n"
        "print(sorted(os.listdir('.')), sorted(os.listdir('public')))\n"
        "open('public/new', 'w')\n"
    )
    answer = score(other, made.FRUIT, code).json()
    assert answer["stdout_tail"] == "['public'] ['sample_submission.csv', 'train.csv']\n"
    assert "Read-only file system" in answer["stderr_tail"]


def test_data_that_is_prepared_while_the_server_runs_is_served(
    other: httpx.Client, place: TaskPlace
) -> None:
    task_id = "without-data"
    made.write(place.root / "data", task_id, "id,level\n1,1\n", "id,level\n1,2\n")
    try:
        assert score(other, task_id, copy_sample(task_id)).json()["score"] == 1.0
    finally:
        (place.root / "data" / task_id).rename(place.root / "unused")


def test_the_command_line_lists_competitions_too(here: TaskPlace) -> None:
    listed = run("list")
    assert all(task_id in listed for task_id in (NEW, made.FRUIT, made.RIVER))
    assert "not served pointed-at: its direction is not known" in listed
    assert "not served random-acts-of-pizza: the id is that of the task in" in listed
    sample = here.root / "data" / made.FRUIT / "prepared" / "public" / "sample_submission.csv"
    graded = run("grade", made.FRUIT, "--submission", sample, "--json")
    found = json.loads(graded)
    assert (found["valid"], found["score"], found["error"]) == (True, 0.75, None)
    assert found["standing"]["exact"]


@pytest.mark.usefixtures("here")
def test_the_command_line_explains_errors() -> None:
    assert "ok" in run("check", made.RIVER)
    assert "the grader fails" in run("check", made.SCALES, status=1)
    assert "Git LFS" in run("check", made.POINTED, status=1)
    assert "mlebench prepare -c river-levels" in run("prepare", made.RIVER, "--twin", status=1)


@pytest.mark.usefixtures("here")
def test_a_new_task_is_written_by_the_command_line(tmp_path: Path) -> None:
    said = run("new", "brand-new", "--directory", tmp_path)
    assert f'/tasks", "{tmp_path}"]' in said
    assert (tmp_path / "brand_new" / "task.toml").is_file()
    assert "already" in run("new", "brand-new", "--directory", tmp_path, status=1)


def test_no_files_are_left_in_the_working_directory() -> None:
    assert not (ROOT / "cache").exists()
