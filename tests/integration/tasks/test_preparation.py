"""Prepared data has MLE-bench's layout and split, safe modes, and a manifest that holds."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import stat
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from reward_server.errors import SetupError
from reward_server.grade.process import ProcessGrader
from reward_server.tasks.base import Source
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.manifest import read_manifest
from reward_server.tasks.preparation import mlebench_checksums
from reward_server.tasks.preparation.inspection import inspect_task
from reward_server.tasks.preparation.mlebench_checksums import compare_with_mlebench
from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.preparation.steps import PreparationStage, PreparationStep
from reward_server.tasks.sdk.modules import load_module
from tests.integration.tasks import tiny
from tests.support.public_tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reward_server.model import Grade
    from reward_server.tasks.preparation.inspection import GradeSubmissions

FOLDERS = find_folders()
PIZZA, SPOOKY, NOMAD = (
    "random-acts-of-pizza",
    "spooky-author-identification",
    "nomad2018-predict-transparent-conductors",
)
CHECKSUMS = Path(mlebench_checksums.__file__).with_suffix(".toml")
ENERGIES = ["formation_energy_ev_natom", "bandgap_energy_ev"]


@pytest.fixture
def raw(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    directory = tmp_path / "raw"
    directory.mkdir()
    load_module(FOLDERS[request.param] / "twin.py").generate(directory, seed=5, rows=60)
    return directory


@pytest.fixture(scope="module")
def grade_all() -> Iterator[GradeSubmissions]:
    """Grade everything in one process, for its start takes seconds."""
    with asyncio.Runner() as runner:
        grader = ProcessGrader()

        def grade(folder: Path, answers: Path, submissions: Iterable[bytes | None]) -> list[Grade]:
            return [
                runner.run(grader.grade_bytes(data, folder, answers, 64 << 20))
                for data in submissions
            ]

        yield grade
        runner.run(grader.aclose())


@pytest.fixture
def narrow_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def files_below(directory: Path) -> dict[str, bytes]:
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def unzip_all(raw: Path) -> None:
    for archive in raw.glob("*.zip"):
        with zipfile.ZipFile(archive) as members:
            members.extractall(raw)
        archive.unlink()


@pytest.mark.parametrize("raw", [PIZZA], indirect=True)
def test_pizza_is_split_as_mle_bench_splits_it(raw: Path, tmp_path: Path) -> None:
    prepare_task(FOLDERS[PIZZA], tmp_path / "data", raw=raw)
    prepared = tmp_path / "data" / PIZZA / "prepared"
    labelled = json.loads((raw / "train.json").read_text())
    unlabelled = json.loads((raw / "test.json").read_text())
    share = len(unlabelled) / (len(labelled) + len(unlabelled))
    train, test = train_test_split(labelled, test_size=share, random_state=0)
    assert json.loads((prepared / "public" / "train.json").read_text()) == train
    public_test = json.loads((prepared / "public" / "test.json").read_text())
    assert [list(request) for request in public_test] == [list(unlabelled[0])] * len(test)
    answers = pd.read_csv(prepared / "private" / "test.csv")
    assert answers["request_id"].tolist() == [request["request_id"] for request in test]
    outcomes = [int(request["requester_received_pizza"]) for request in test]
    assert answers["requester_received_pizza"].tolist() == outcomes
    with zipfile.ZipFile(prepared / "public" / "train.zip") as archive:
        assert archive.read("train.json") == (prepared / "public" / "train.json").read_bytes()


@pytest.mark.parametrize("raw", [SPOOKY], indirect=True)
def test_spooky_is_split_as_mle_bench_splits_it(raw: Path, tmp_path: Path) -> None:
    prepare_task(FOLDERS[SPOOKY], tmp_path / "data", raw=raw)
    prepared = tmp_path / "data" / SPOOKY / "prepared"
    unzip_all(raw)
    train, test = train_test_split(read_table(raw / "train.csv"), test_size=0.1, random_state=0)
    pd.testing.assert_frame_equal(
        read_table(prepared / "public" / "train.csv"), train.reset_index(drop=True)
    )
    answers = read_table(prepared / "private" / "test.csv")
    assert list(answers.columns) == ["id", "EAP", "HPL", "MWS"]
    assert answers.set_index("id").idxmax(axis=1).tolist() == test["author"].tolist()
    assert list(read_table(prepared / "public" / "test.csv").columns) == ["id", "text"]


@pytest.mark.parametrize("raw", [NOMAD], indirect=True)
def test_nomad_is_split_as_mle_bench_splits_it(raw: Path, tmp_path: Path) -> None:
    prepare_task(FOLDERS[NOMAD], tmp_path / "data", raw=raw)
    prepared = tmp_path / "data" / NOMAD / "prepared"
    unzip_all(raw)
    train, test = train_test_split(read_table(raw / "train.csv"), test_size=0.1, random_state=0)
    for side, part in (("train", train), ("test", test)):
        for new, old in enumerate(part["id"], start=1):
            moved = prepared / "public" / side / str(new) / "geometry.xyz"
            assert moved.read_bytes() == (raw / "train" / str(old) / "geometry.xyz").read_bytes()
    answers = read_table(prepared / "private" / "test.csv")
    assert answers["id"].tolist() == list(range(1, len(test) + 1))
    assert answers[ENERGIES].to_numpy().tolist() == test[ENERGIES].to_numpy().tolist()
    assert not set(ENERGIES) & set(read_table(prepared / "public" / "test.csv").columns)


@pytest.mark.parametrize("raw", FOLDERS, indirect=True)
def test_zipped_and_unzipped_raw_files_give_the_same_data(
    raw: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = FOLDERS[request.node.callspec.params["raw"]]
    before = files_below(raw)
    zipped = prepare_task(folder, tmp_path / "one", raw=raw)
    assert files_below(raw) == before
    unzip_all(raw)
    unzipped = prepare_task(folder, tmp_path / "two", raw=raw)
    assert zipped.data_digest == unzipped.data_digest
    assert zipped.source is Source.RAW


@pytest.mark.parametrize(
    ("task_id", "named"), [(PIZZA, "train.json"), (SPOOKY, "train.csv"), (NOMAD, "train.csv")]
)
def test_a_missing_raw_file_is_named(tmp_path: Path, task_id: str, named: str) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(SetupError, match=named):
        prepare_task(FOLDERS[task_id], tmp_path / "data", raw=tmp_path / "raw")
    assert list((tmp_path / "data" / task_id).iterdir()) == []


@pytest.mark.parametrize("raw", [NOMAD], indirect=True)
def test_a_missing_geometry_is_named(raw: Path, tmp_path: Path) -> None:
    unzip_all(raw)
    shutil.rmtree(raw / "train" / "7")
    with pytest.raises(SetupError, match=r"train/7/geometry\.xyz"):
        prepare_task(FOLDERS[NOMAD], tmp_path / "data", raw=raw)


@pytest.mark.usefixtures("narrow_umask")
def test_file_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    data = tmp_path / "data"
    prepare_task(FOLDERS[NOMAD], data)
    prepared = data / NOMAD / "prepared"
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in prepared.rglob("*")}
    for path, mode in modes.items():
        is_open = path.relative_to(prepared).parts[0] == "public"
        expected = (0o755, 0o644) if is_open else (0o700, 0o600)
        assert mode == expected[path.is_file()], path
    for path in (data, data / NOMAD, prepared):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_preparing_again_replaces_the_data_and_leaves_nothing_behind(
    tmp_path: Path, grade_all: GradeSubmissions
) -> None:
    steps: list[PreparationStep] = []
    first = prepare_task(FOLDERS[SPOOKY], tmp_path, progress=steps.append)
    second = prepare_task(FOLDERS[SPOOKY], tmp_path)
    assert first.data_digest != second.data_digest
    assert [path.name for path in (tmp_path / SPOOKY).iterdir()] == ["prepared"]
    assert inspect_task(FOLDERS[SPOOKY], tmp_path, grade_all).failures == ()
    assert {step.task_id for step in steps} == {SPOOKY}
    stages = list(dict.fromkeys(step.stage for step in steps))
    wanted = [
        PreparationStage.TWIN,
        PreparationStage.SPLIT,
        PreparationStage.RECORD,
        PreparationStage.GRADE,
        PreparationStage.VERIFY,
        PreparationStage.READY,
    ]
    assert stages == wanted
    assert {step.done for step in steps if step.stage is PreparationStage.VERIFY} == {
        len(first.files)
    }


def test_a_failed_preparation_keeps_the_old_data(
    tmp_path: Path, data_dir: Path, grade_all: GradeSubmissions
) -> None:
    shutil.copytree(data_dir / SPOOKY, tmp_path / "data" / SPOOKY)
    (tmp_path / "raw").mkdir()
    with pytest.raises(SetupError):
        prepare_task(FOLDERS[SPOOKY], tmp_path / "data", raw=tmp_path / "raw")
    assert inspect_task(FOLDERS[SPOOKY], tmp_path / "data", grade_all).failures == ()


def test_the_manifest_is_written_and_stays_out_of_public(tmp_path: Path) -> None:
    made = prepare_task(FOLDERS[SPOOKY], tmp_path)
    assert read_manifest(tmp_path / SPOOKY / "prepared") == made
    assert sorted(files_below(tmp_path / SPOOKY / "prepared" / "public")) == [
        "description.md",
        "sample_submission.csv",
        "test.csv",
        "train.csv",
    ]
    manifest = json.loads((tmp_path / SPOOKY / "prepared" / "manifest.json").read_text())
    assert sorted(manifest) == [
        *("created", "data_digest", "files", "format", "recipe", "rows", "sample_score", "size"),
        *("source", "task_id"),
    ]
    assert (manifest["size"], manifest["rows"]) == ("small", 3000)


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda prepared: change(prepared / "private" / "test.csv"), "has changed"),
        (lambda prepared: (prepared / "public" / "test.csv").unlink(), "is missing"),
        (lambda prepared: (prepared / "public" / "answers.csv").touch(), "not a file the card"),
    ],
    ids=["a changed file", "a missing file", "an unknown file"],
)
def test_damage_is_found(
    tmp_path: Path, data_dir: Path, grade_all: GradeSubmissions, damage: object, problem: str
) -> None:
    shutil.copytree(data_dir / SPOOKY, tmp_path / SPOOKY)
    assert callable(damage)
    damage(tmp_path / SPOOKY / "prepared")
    report = inspect_task(FOLDERS[SPOOKY], tmp_path, grade_all)
    assert any(problem in found.sentence for found in report.failures)


@pytest.mark.parametrize("task_id", FOLDERS)
def test_the_sample_submissions_score_is_recorded(
    task_id: str, data_dir: Path, grade_all: GradeSubmissions
) -> None:
    card, prepared = read_card(FOLDERS[task_id]), data_dir / task_id / "prepared"
    sample = (prepared / "public" / card.sample_submission).read_bytes()
    (grade,) = grade_all(FOLDERS[task_id], prepared / "private" / card.answers, [sample])
    assert read_manifest(prepared).sample_score == grade.score


def test_a_sample_without_a_number_has_no_score(tmp_path: Path) -> None:
    folder = tiny.write_task(tmp_path / "tasks")
    grader = (folder / "grade.py").read_text()
    (folder / "grade.py").write_text(
        grader + "\ndef score(truth, prediction):\n    return 0 * 1e999\n"
    )
    assert prepare_task(folder, tmp_path / "data").sample_score is None


@pytest.mark.parametrize("name", ["twin.py", "prepare.py", "grade.py"])
def test_an_error_in_task_code_is_one_line_that_names_the_file(tmp_path: Path, name: str) -> None:
    folder = tiny.write_task(tmp_path / "tasks")
    failing = "".join(
        f"def {function}(*_, **__):\n    raise KeyError('a\\nb')\n"
        for function in ("generate", "prepare", "score")
    )
    (folder / name).write_text((folder / name).read_text() + "\n" + failing)
    with pytest.raises(SetupError, match=rf"^tiny-task: {name} failed with KeyError: .*$"):
        prepare_task(folder, tmp_path / "data")
    assert list((tmp_path / "data" / tiny.ID).iterdir()) == []


@pytest.mark.parametrize("task_id", FOLDERS)
def test_the_files_with_known_checksums_are_prepared(task_id: str, data_dir: Path) -> None:
    sums = tomllib.loads(CHECKSUMS.read_text())
    assert len(sums) == 12
    assert sums[task_id].keys() <= read_manifest(data_dir / task_id / "prepared").files.keys()


def test_raw_data_is_compared_with_mle_benchs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, raw, data = tiny.write_task(tmp_path / "tasks"), tmp_path / "raw", tmp_path / "data"
    raw.mkdir()
    rows = "".join(f"{n},0.5,{n % 2}\n" for n in range(30))
    (raw / "train.csv").write_text(f"id,x,y\n{rows}")
    prepare_task(folder, data, raw=raw)
    prepared = data / tiny.ID / "prepared"
    assert compare_with_mlebench(tiny.ID, prepared) is None
    train, test = (
        hashlib.md5((prepared / name).read_bytes(), usedforsecurity=False).hexdigest()
        for name in ("public/train.csv", "private/test.csv")
    )
    sums = tmp_path / "sums.toml"
    monkeypatch.setattr("reward_server.tasks.preparation.mlebench_checksums._SUMS", sums)
    steps: list[PreparationStep] = []
    for known in (test, train):
        sums.write_text(
            f'[{tiny.ID}]\n"public/train.csv" = "{train}"\n"private/test.csv" = "{known}"\n'
        )
        prepare_task(folder, data, raw=raw, progress=steps.append)
    notes = [step.detail for step in steps if step.stage is PreparationStage.READY]
    assert notes[0].endswith("; equals MLE-bench's own data")
    assert notes[1].endswith("; differs from MLE-bench's in: private/test.csv")


@pytest.mark.parametrize("task_id", FOLDERS)
def test_a_prepared_twin_passes_every_check(
    task_id: str, data_dir: Path, grade_all: GradeSubmissions
) -> None:
    assert inspect_task(FOLDERS[task_id], data_dir, grade_all).failures == ()
