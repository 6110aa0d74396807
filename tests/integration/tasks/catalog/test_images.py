"""The two tasks with pictures: their splits, what is said of wrong raw files, and their twins."""

from __future__ import annotations

import math
import shutil
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.model_selection import train_test_split

from reward_server.errors import SetupError
from reward_server.tasks.catalog.leaf_classification.species import SPECIES
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.sdk.modules import load_module
from reward_server.tasks.sdk.submission_table import InvalidSubmissionError
from tests.support.public_tables import read_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOLDERS = find_folders()
PLANT, LEAF = "plant-pathology-2020-fgvc7", "leaf-classification"
STATES = ["healthy", "multiple_diseases", "rust", "scab"]
ROWS = 60


def make_raw(task_id: str, directory: Path) -> Path:
    """Make a twin's raw files, unzipped as a user may have them."""
    raw = directory / "raw"
    raw.mkdir()
    load_module(FOLDERS[task_id] / "twin.py").generate(raw, seed=5, rows=ROWS)
    for archive in raw.glob("*.zip"):
        with zipfile.ZipFile(archive) as members:
            members.extractall(raw)
        archive.unlink()
    return raw


def split_of(raw: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, test = train_test_split(read_table(raw / "train.csv"), test_size=0.1, random_state=0)
    return train, test


def test_plant_is_split_as_mle_bench_splits_it(tmp_path: Path) -> None:
    raw = make_raw(PLANT, tmp_path)
    prepare_task(FOLDERS[PLANT], tmp_path / "data", raw=raw)
    prepared = tmp_path / "data" / PLANT / "prepared"
    public, answers = prepared / "public", read_table(prepared / "private" / "test.csv")
    parts = {"Train": read_table(public / "train.csv"), "Test": answers}
    for (side, table), old in zip(parts.items(), split_of(raw), strict=True):
        assert table["image_id"].tolist() == [f"{side}_{number}" for number in range(len(old))]
        assert list(table.columns) == ["image_id", *STATES]
        assert table[STATES].to_numpy().tolist() == old[STATES].to_numpy().tolist()
        for new_id, old_id in zip(table["image_id"], old["image_id"], strict=True):
            picture = (public / "images" / f"{new_id}.jpg").read_bytes()
            assert picture == (raw / "images" / f"{old_id}.jpg").read_bytes()
    assert len(list((public / "images").iterdir())) == ROWS
    pd.testing.assert_frame_equal(read_table(public / "test.csv"), answers[["image_id"]])
    sample = read_table(public / "sample_submission.csv")
    pd.testing.assert_frame_equal(sample, answers.assign(**dict.fromkeys(STATES, 0.25)))


def test_leaf_is_split_as_mle_bench_splits_it(tmp_path: Path) -> None:
    raw = make_raw(LEAF, tmp_path)
    prepare_task(FOLDERS[LEAF], tmp_path / "data", raw=raw)
    prepared = tmp_path / "data" / LEAF / "prepared"
    train, test = split_of(raw)
    public, answers = prepared / "public", read_table(prepared / "private" / "test.csv")
    for name, part in (("train.csv", train), ("test.csv", test.drop(columns="species"))):
        pd.testing.assert_frame_equal(read_table(public / name), part.reset_index(drop=True))
    assert list(answers.columns) == ["id", *SPECIES]
    assert answers["id"].tolist() == test["id"].tolist()
    assert answers[list(SPECIES)].idxmax(axis=1).tolist() == test["species"].tolist()
    assert (answers[list(SPECIES)].sum(axis=1) == 1).all()
    sample = read_table(public / "sample_submission.csv")
    pd.testing.assert_frame_equal(sample, answers.assign(**dict.fromkeys(SPECIES, 1 / 99)))
    for number in (*train["id"], *test["id"]):
        name = f"images/{number}.jpg"
        assert (public / name).read_bytes() == (raw / name).read_bytes()


def nest(raw: Path) -> None:
    (raw / "images").rename(raw / "inner")
    (raw / "images").mkdir()
    (raw / "inner").rename(raw / "images" / "images")


def zip_up(raw: Path) -> None:
    shutil.make_archive(str(raw / "images"), "zip", raw, "images")
    shutil.rmtree(raw / "images")


@pytest.mark.parametrize("task_id", [PLANT, LEAF])
@pytest.mark.parametrize("arrange", [nest, zip_up], ids=["a folder in a folder", "an archive"])
def test_pictures_are_found_however_they_are_shipped(
    task_id: str, arrange: Callable[[Path], None], tmp_path: Path
) -> None:
    raw = make_raw(task_id, tmp_path)
    plain = prepare_task(FOLDERS[task_id], tmp_path / "one", raw=raw)
    arrange(raw)
    arranged = prepare_task(FOLDERS[task_id], tmp_path / "two", raw=raw)
    assert plain.data_digest == arranged.data_digest


def change_table(raw: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    change(read_table(raw / "train.csv")).to_csv(raw / "train.csv", index=False)


def lose_picture(raw: Path) -> None:
    max((raw / "images").iterdir()).unlink()


def lose_zipped_picture(raw: Path) -> None:
    lose_picture(raw)
    zip_up(raw)


def damage_archive(raw: Path) -> None:
    zip_up(raw)
    (raw / "images.zip").write_bytes((raw / "images.zip").read_bytes()[:5000])


def damage_member(raw: Path) -> None:
    zip_up(raw)
    data = bytearray((raw / "images.zip").read_bytes())
    data[len(data) // 3] ^= 0xFF
    data[len(data) // 3 + 1] ^= 0xFF
    (raw / "images.zip").write_bytes(bytes(data))


WRONG = {
    "no table": (PLANT, lambda raw: (raw / "train.csv").unlink(), r"train\.csv"),
    "no leaf table": (LEAF, lambda raw: (raw / "train.csv").unlink(), r"train\.csv"),
    "no pictures": (PLANT, lambda raw: shutil.rmtree(raw / "images"), "images.* is missing"),
    "a picture missing": (PLANT, lose_picture, r"images/Train_9\.jpg"),
    "a zipped picture missing": (PLANT, lose_zipped_picture, r"images/Train_9\.jpg"),
    "a leaf's picture missing": (LEAF, lose_picture, r"images/\d+\.jpg"),
    "a damaged archive": (LEAF, damage_archive, r"images\.zip"),
    "a damaged picture in an archive": (PLANT, damage_member, r"images\.zip"),
    "a state missing": (
        PLANT,
        lambda raw: change_table(raw, lambda table: table.drop(columns="rust")),
        r"train\.csv has no column rust",
    ),
    "a feature missing": (
        LEAF,
        lambda raw: change_table(raw, lambda table: table.drop(columns="texture64")),
        r"train\.csv has no column texture64",
    ),
    "an unknown species": (
        LEAF,
        lambda raw: change_table(raw, lambda table: table.replace(table["species"][7], "Rosa")),
        r"train\.csv has an unknown species: Rosa",
    ),
}


@pytest.mark.parametrize(("task_id", "spoil", "named"), WRONG.values(), ids=WRONG.keys())
def test_the_fault_of_raw_files_is_named(
    task_id: str, spoil: Callable[[Path], None], named: str, tmp_path: Path
) -> None:
    raw = make_raw(task_id, tmp_path)
    spoil(raw)
    with pytest.raises(SetupError, match=named):
        prepare_task(FOLDERS[task_id], tmp_path / "data", raw=raw)


def test_every_state_is_on_both_sides_of_the_split_whatever_the_seed() -> None:
    twin = load_module(FOLDERS[PLANT] / "twin.py")
    for rows in (50, 60, 600):
        for seed in range(50):
            states = twin._states(np.random.default_rng(seed), rows)
            for side in train_test_split(states, test_size=0.1, random_state=0):
                assert set(side) == {0, 1, 2, 3}
    shares = np.bincount(states) / len(states)
    assert shares == pytest.approx([0.28, 0.05, 0.34, 0.33], abs=0.02)


def test_every_species_has_as_many_leaves_and_is_in_the_train_file(tmp_path: Path) -> None:
    prepare_task(FOLDERS[LEAF], tmp_path)
    train = read_table(tmp_path / LEAF / "prepared" / "public" / "train.csv")
    assert set(train["species"]) == set(SPECIES)
    answers = read_table(tmp_path / LEAF / "prepared" / "private" / "test.csv")
    assert (train["species"].value_counts() + answers[list(SPECIES)].sum() == 8).all()


@pytest.mark.parametrize(("task_id", "mode"), [(PLANT, "RGB"), (LEAF, "L")])
def test_pictures_of_a_large_twin_are_large(
    task_id: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = load_module(FOLDERS[task_id] / "twin.py")
    widths = {}
    for name, large_from in (("small", 21), ("large", 20)):
        raw = tmp_path / name
        raw.mkdir()
        monkeypatch.setattr(twin, "_LARGE_FROM_ROWS", large_from)
        twin.generate(raw, seed=1, rows=20)
        prepare_task(FOLDERS[task_id], tmp_path / f"{name} data", raw=raw)
        prepared = tmp_path / f"{name} data" / task_id / "prepared"
        pictures = [Image.open(path) for path in (prepared / "public" / "images").iterdir()]
        assert len(pictures) == 20
        assert {picture.mode for picture in pictures} == {mode}
        widths[name] = max(picture.width for picture in pictures)
        for picture in pictures:
            picture.close()
    assert widths["large"] > 10 * widths["small"]


def test_the_leaf_card_names_every_species() -> None:
    card = read_card(FOLDERS[LEAF])
    assert card.columns == ("id", *SPECIES)
    assert len(set(SPECIES)) == 99


def state_table(healthy: list[str]) -> pd.DataFrame:
    others = {"multiple_diseases": [0, 1, 0, 0], "rust": [0, 0, 1, 0], "scab": [0, 0, 0, 1]}
    ids = [f"Test_{number}" for number in range(4)]
    return pd.DataFrame({"image_id": ids, "healthy": [int(text) for text in healthy], **others})


def test_integers_equal_as_floats_are_ranked_apart() -> None:
    grader = load_module(FOLDERS[PLANT] / "grade.py")
    submission = state_table([str((1 << 60) + number) for number in (3, 2, 1, 0)])
    truth, prediction = grader.align(submission, state_table(["1", "0", "0", "0"]))
    assert grader.score(truth, prediction) == 1.0


def test_answers_with_one_state_for_all_cannot_be_scored() -> None:
    grader = load_module(FOLDERS[PLANT] / "grade.py")
    answers = state_table(["1", "1", "1", "1"])
    with pytest.raises(InvalidSubmissionError):
        grader.align(state_table(["1", "0", "0", "0"]), answers)


def test_a_certain_mistake_about_a_leaf_costs_at_most_the_clipping() -> None:
    grader = load_module(FOLDERS[LEAF] / "grade.py")
    table = pd.DataFrame(np.eye(99, dtype=int)[:2], columns=list(SPECIES))
    answers, wrong = table.assign(id=[3, 5]), table.assign(id=[5, 3])
    worst = -math.log(np.finfo(np.float64).eps)
    assert grader.score(*grader.align(wrong, answers)) == pytest.approx(worst, abs=1e-9)
